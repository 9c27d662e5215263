//! `--lora FILE[:SCALE]`: LoRA adapters on the command line.

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueHint};
use model::{AdapterFile, Applied, Model, Note};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An adapter and its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub path: PathBuf,
    pub scale: f32,
}

impl FromStr for Choice {
    type Err = String;

    /// Text after the last colon is the scale if it is a number, else a part of the path.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbered = text.rsplit_once(':').and_then(|(path, number)| Some((path, number.parse().ok()?)));
        let (path, scale): (&str, f32) = numbered.unwrap_or((text, 1.0));
        if path.is_empty() {
            return Err("the file name is missing".to_string());
        }
        if !scale.is_finite() {
            return Err(format!("a scale of {scale} is not finite"));
        }
        Ok(Self { path: PathBuf::from(path), scale })
    }
}

impl Choice {
    /// Loads the adapter beside the weights of a model.
    pub fn load(&self, model: &Model) -> Result<Applied> {
        Ok(Applied { adapter: model.adapter(&open(&self.path)?)?, scale: self.scale })
    }
}

/// Opens an adapter. The error for a path without a file says which scale it would have.
pub fn open(path: &Path) -> Result<AdapterFile> {
    if let Err(error) = std::fs::metadata(path)
        && error.kind() == ErrorKind::NotFound
    {
        return Err(missing(path));
    }
    Ok(AdapterFile::open(path)?)
}

fn missing(path: &Path) -> anyhow::Error {
    let name = path.display().to_string();
    match name.rsplit_once(':') {
        Some((file, scale)) if Path::new(file).exists() => {
            anyhow!(
                "{name}: no such adapter; {file} exists, and \"{scale}\" is not a scale: write a number, as in {file}:0.5"
            )
        }
        _ => anyhow!("{name}: no such adapter: there is no file or folder of this name"),
    }
}

/// The adapters that the command line names.
#[derive(Args, Clone, Debug, Default)]
pub struct Adapters {
    /// Apply a LoRA adapter, multiplied by SCALE [default: 1]: a folder or safetensors file of
    /// PEFT, or a GGUF file of llama.cpp; may be given several times
    #[arg(long = "lora", value_name = "FILE[:SCALE]", value_hint = ValueHint::AnyPath)]
    pub choices: Vec<Choice>,
}

impl Adapters {
    /// Opens the adapter files without loading their weights.
    pub fn open(&self) -> Result<Vec<(AdapterFile, f32)>> {
        self.choices.iter().map(|choice| Ok((open(&choice.path)?, choice.scale))).collect()
    }
}

/// Prints what was left out of an adapter.
pub fn say(path: &Path, note: Option<&Note>) {
    if let Some(said) = note {
        crate::exit::note(&format!("{}: {}", path.display(), crate::text::printable(&said.to_string())));
    }
}

/// The same adapter, loaded beside other weights of its model.
pub fn again(applied: &Applied, model: &Model) -> Result<Applied> {
    let path = applied.adapter.path().context("an adapter without a file")?.to_path_buf();
    Choice { path, scale: applied.scale }.load(model)
}

/// The path of an adapter's file.
pub fn name(applied: &Applied) -> String {
    applied.adapter.path().map_or_else(String::new, |path| path.display().to_string())
}

/// The applied adapters as JSON, for reports.
pub fn report(adapters: &[Applied]) -> Value {
    adapters.iter().map(|applied| json!({ "file": name(applied), "scale": applied.scale })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_what_follows_the_last_colon_and_is_a_number() {
        for (text, path, scale) in [
            ("a.gguf", "a.gguf", 1.0),
            ("a.gguf:0.5", "a.gguf", 0.5),
            ("a:b:-2", "a:b", -2.0),
            ("C:\\adapters\\a", "C:\\adapters\\a", 1.0),
            ("a.gguf:", "a.gguf:", 1.0),
            ("./name:latest", "./name:latest", 1.0),
        ] {
            assert_eq!(text.parse(), Ok(Choice { path: path.into(), scale }), "{text}");
        }
        for bad in ["", ":0.5", "a:nan", "a:-inf", "a:1e99"] {
            assert!(bad.parse::<Choice>().is_err(), "{bad}");
        }
    }
}
