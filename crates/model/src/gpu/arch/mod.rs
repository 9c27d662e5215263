//! The architectures: one file each, to be read from top to bottom. They share the kernels'
//! operations and `head.rs` (token embedding and logits).

mod architecture;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod head;
mod qwen2;
mod qwen2moe;
mod qwen3;
mod qwen3moe;
mod states;

use crate::error::Error;
use crate::load::Loader;
use gguf::Gguf;

pub(crate) use architecture::Architecture;
pub use architecture::{Cache, Logits, Summary};
pub use head::{Head, embed_tokens, logits, rows_for};
pub(crate) use states::document_states;
pub use states::{kv_states, states};

/// Reads the hyper-parameters, then loads every tensor. With dry weights it only checks the
/// tensors.
type Load = fn(&Gguf, &mut Loader<'_>) -> Result<Box<dyn Architecture>, Error>;

/// The architectures, by their name in GGUF files.
const KNOWN: &[(&str, Load)] = &[
    ("gemma2", gemma2::load),
    ("gemma3", gemma3::load),
    ("gemma3n", gemma3n::load),
    ("gemma4", gemma4::load),
    ("qwen2", qwen2::load),
    ("qwen2moe", qwen2moe::load),
    ("qwen3", qwen3::load),
    ("qwen3moe", qwen3moe::load),
];

/// The name and the loader of a file's architecture.
pub(crate) fn find(file: &Gguf) -> Result<(&'static str, Load), Error> {
    let name = file.architecture()?;
    let known = KNOWN.iter().find(|(n, _)| *n == name).copied();
    known.ok_or_else(|| Error::Architecture { name: name.to_string(), known: names() })
}

/// The names of all architectures.
#[must_use]
pub fn names() -> Vec<&'static str> {
    KNOWN.iter().map(|(n, _)| *n).collect()
}
