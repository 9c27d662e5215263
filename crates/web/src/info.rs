//! What a page is told of a model.

use crate::hasher::hex;
use gguf::Gguf;
use kernels::{Class, Executor};
use model::arch::Summary;
use model::chat::ChatTemplate;
use model::{ModelFile, Needs, Note};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The parts of `ModelInfo`.
pub struct Facts<'a> {
    pub name: &'a str,
    pub file: &'a Gguf,
    pub summary: &'a Summary,
    pub executor: &'a Executor,
    pub digest: Option<[u8; 32]>,
    pub template: &'a ChatTemplate,
    pub notes: &'a [Note],
}

impl Facts<'_> {
    /// `ModelInfo` of `types.ts`. The digest is empty before the weights are loaded.
    pub fn info(&self) -> Value {
        let fallback = match self.executor {
            Executor::Gpu(device) => device.adapter().class == Class::Software,
            Executor::Cpu => false,
        };
        let tensors = self.file.tensors();
        let mut notes: Vec<String> = self.notes.iter().map(ToString::to_string).collect();
        if let Err(error) = self.template.check() {
            notes.push(format!("the chat template of the file cannot be used, only raw text: {error}"));
        }
        json!({
            "name": self.file.get_opt::<&str>("general.name").ok().flatten().unwrap_or(self.name),
            "architecture": self.summary.architecture,
            "executor": self.executor.kind(),
            "adapter": self.executor.name(),
            "fallback": fallback,
            "digest": self.digest.map(|digest| hex(&digest)).unwrap_or_default(),
            "contextLength": self.summary.context_length,
            "layers": self.summary.block_count,
            "vocabulary": self.summary.vocabulary,
            "parameters": tensors.iter().map(gguf::TensorInfo::elements).sum::<u64>(),
            "type": usual_type(self.file),
            "fileBytes": self.file.source().len_bytes(),
            "template": {
                "present": !self.template.source().is_empty(),
                "tools": self.template.knows_tools(),
                "thinking": self.template.knows_thinking(),
            },
            "notes": notes,
        })
    }
}

/// The type that most bytes of the tensors have.
fn usual_type(file: &Gguf) -> String {
    let mut bytes = BTreeMap::new();
    for tensor in file.tensors() {
        if let Ok(ty) = tensor.ty() {
            *bytes.entry(ty.name()).or_insert(0) += tensor.bytes;
        }
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or_else(String::new, |(name, _)| name.to_string())
}

/// `Needs` of `types.ts`.
pub fn needs(needs: &Needs, available: Option<u64>) -> Value {
    json!({
        "weights": needs.weights.0,
        "kv": needs.kv.0,
        "intermediates": needs.intermediates.0,
        "total": needs.total().0,
        "available": available,
    })
}

/// The facts of a file whose tensors were checked.
pub fn of_file<'a>(name: &'a str, file: &'a ModelFile, summary: &'a Summary, executor: &'a Executor) -> Facts<'a> {
    let (template, notes) = (file.template(), file.notes());
    Facts { name, file: file.file(), summary, executor, digest: None, template, notes }
}
