//! The folders and the files of fixtures.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::Path;

/// The folders of the fixtures that this version runs.
pub const FOLDERS: [&str; 7] = ["qwen2", "qwen3", "gemma2", "gemma3", "gemma4e", "gemma4d", "gemma4moe"];

/// A file of JSON.
pub fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// A list of token ids.
pub fn ids(value: &Value) -> Result<Vec<u32>> {
    let list = value.as_array().context("not a list of ids")?;
    list.iter().map(|v| v.as_u64().map(|v| v as u32).context("not an id")).collect()
}
