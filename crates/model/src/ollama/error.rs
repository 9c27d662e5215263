//! Errors in Ollama's store.

use crate::size::Size;
use std::io;
use std::path::PathBuf;

/// Why a model in Ollama's store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OllamaError {
    /// A name that no registry allows.
    #[error(
        "\"{}\" is not an Ollama model name: \
         [HOST/][USER/]NAME[:TAG], of letters, digits and . - _",
        name.escape_debug()
    )]
    Name { name: String },
    /// No store has the model. `near` are similar names that a store has, most similar first.
    #[error("Ollama has no {name} here; {}", near_names(near, stores))]
    NotFound { name: String, near: Vec<String>, stores: Vec<PathBuf> },
    /// A file of the store cannot be read.
    #[error("cannot read {}: {error}{}", path.display(), permission(error))]
    Unreadable { path: PathBuf, error: io::Error },
    /// A manifest is broken, or does not describe a GGUF model.
    #[error("the manifest {} cannot be used: {reason}", path.display())]
    Manifest { path: PathBuf, reason: String },
    /// A layer's file is missing.
    #[error("{name} is incomplete: its {kind} {} is missing; pull it again", path.display())]
    BlobMissing { name: String, kind: String, path: PathBuf },
    /// A layer's length is not the one in the manifest.
    #[error(
        "{name} is damaged: its {kind} {} has {} bytes, the manifest says {} ({}); pull it again",
        path.display(), found, expected, if found < expected { "it was cut short" } else { "it is another file" }
    )]
    BlobSize { name: String, kind: String, path: PathBuf, expected: u64, found: u64 },
    /// A layer's content does not match its digest.
    #[error(
        "{name} is damaged: its {kind} {} has the digest sha256:{found}; pull it again",
        path.display()
    )]
    BlobDigest { name: String, kind: String, path: PathBuf, found: String },
    /// A text layer is longer than the limit.
    #[error("{name}: its {kind} has {}, more than {}", Size(*bytes), Size(*limit))]
    TextSize { name: String, kind: String, bytes: u64, limit: u64 },
    /// The parameters cannot be parsed.
    #[error("{name}: its parameters cannot be read: {reason}")]
    Params { name: String, reason: String },
    /// A parameter is out of range.
    #[error("Ollama's parameters have {param} = {found}, outside {least} to {most}")]
    ParamRange { param: String, found: f64, least: f64, most: f64 },
    /// The messages cannot be parsed.
    #[error("{name}: its messages cannot be read: {reason}")]
    Messages { name: String, reason: String },
}

fn near_names(near: &[String], stores: &[PathBuf]) -> String {
    match (near, stores) {
        ([], []) => "it has no models on this machine".to_string(),
        ([], [first, ..]) => format!("{} holds no models", first.display()),
        (names, _) => format!("it has {}", names.join(", ")),
    }
}

fn permission(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; the store belongs to the user ollama: join its group to read it",
        _ => "",
    }
}
