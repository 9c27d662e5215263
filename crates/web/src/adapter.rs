//! Adapters from files in memory.

use crate::error::Failure;
use crate::json;
use gguf::Gguf;
use model::{AdapterFile, Applied};
use serde_json::json;
use std::sync::Arc;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// An adapter beside the weights of a model.
#[wasm_bindgen]
pub struct Adapter {
    pub(crate) adapter: Arc<model::Adapter>,
}

#[wasm_bindgen]
impl Adapter {
    /// `AdapterInfo`.
    pub fn info(&self) -> JsValue {
        let notes: Vec<String> = self.adapter.note().iter().map(ToString::to_string).collect();
        json::write(&json!({ "matrices": self.adapter.len(), "bytes": self.adapter.bytes(), "notes": notes }))
    }
}

/// Adapters with their scales, in the order in which they are applied.
#[wasm_bindgen]
#[derive(Default)]
pub struct Adapters(pub(crate) Vec<Applied>);

#[wasm_bindgen]
impl Adapters {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add(&mut self, adapter: &Adapter, scale: f32) {
        self.0.push(Applied { adapter: Arc::clone(&adapter.adapter), scale });
    }
}

impl Adapter {
    /// Loads PEFT's two files, or a GGUF file.
    pub async fn load(model: &model::Model, files: &[JsValue]) -> Result<Self, Failure> {
        let adapter = model.adapter_async(&file(files)?).await?;
        Ok(Self { adapter })
    }
}

/// The adapter of PEFT's two files, or of a GGUF file.
pub fn file(files: &[JsValue]) -> Result<AdapterFile, Failure> {
    let wrong = |message: &str| Failure::new("adapter", message);
    let mut named = vec![];
    for file in files {
        let bytes = json::bytes(file, "bytes").ok_or_else(|| wrong("a file of the adapter has no bytes"))?;
        named.push((json::get(file, "name").as_string().unwrap_or_default(), bytes));
    }
    let mut take = |ends: &str| {
        let at = named.iter().position(|(name, _)| name.ends_with(ends))?;
        Some(named.swap_remove(at).1)
    };
    if let Some(bytes) = take(".gguf") {
        return Ok(AdapterFile::from_gguf(Gguf::from_bytes(bytes)?).map_err(model::Error::from)?);
    }
    let tensors = take(".safetensors").ok_or_else(|| {
        wrong("an adapter is a .gguf file, or adapter_model.safetensors with adapter_config.json; give these files")
    })?;
    let config = take(".json").unwrap_or_default();
    let config = String::from_utf8(config).map_err(|_| wrong("adapter_config.json is not a text in UTF-8"))?;
    Ok(AdapterFile::from_peft(&config, Box::new(tensors)).map_err(model::Error::from)?)
}
