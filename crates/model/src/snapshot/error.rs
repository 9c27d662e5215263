//! Why a session could not be saved or restored.

use crate::arch::Cache;
use cpu_ref::KvType;
use std::io;

/// The errors of [`Session::save`](crate::Session::save) and [`Session::load`](crate::Session::load).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("cannot write the session: {error}")]
    Write { error: io::Error },
    #[error("cannot read the saved session: {error}")]
    Read { error: io::Error },
    /// The first bytes are others.
    #[error("this is no saved session")]
    Magic,
    /// Another version of the format, a later one as a rule.
    #[error("the saved session has version {found} of the format, this program reads version {known}; update it or save anew")]
    Version { found: u32, known: u32 },
    /// The bytes end too soon.
    #[error("the saved session is cut short within its {part}: {needed} bytes needed, {found} left")]
    Truncated { part: &'static str, needed: u64, found: u64 },
    /// Something announced is larger than it can be.
    #[error("the saved session announces {found} bytes of {part}, at most {limit} are possible; it is damaged")]
    Size { part: &'static str, found: u64, limit: u64 },
    /// The bytes are not those that were written.
    #[error("the checksum of the saved session's {part} does not fit: it was damaged or altered")]
    Checksum { part: &'static str },
    /// A field that no writer of this version makes.
    #[error("the saved session's {part} is not possible")]
    Field { part: &'static str },
    #[error("the session was saved with a {found} model, this one is {expected}")]
    Architecture { found: String, expected: &'static str },
    /// The digest of header, tensors or sampled blocks differs.
    #[error("the session was saved with another model file: its digest differs")]
    Model,
    /// Keys and values were made with other adapters, or the same with other scales or in another order.
    #[error(
        "the session was saved under {}, this one is under {}{}; apply the same with --lora, in the same order",
        list(found), list(expected), if found == expected { " of other contents" } else { "" }
    )]
    Adapters { found: Vec<String>, expected: Vec<String> },
    #[error("the session was saved with a KV cache of {}, this one has {}; choose --kv {}", name(*found), name(*expected), name(*found))]
    KvType { found: KvType, expected: KvType },
    #[error("the session was saved with the caches {found:?}, this model has {expected:?}")]
    Caches { found: Vec<Cache>, expected: Vec<Cache> },
}

fn list(adapters: &[String]) -> String {
    if adapters.is_empty() { "no adapters".to_string() } else { adapters.join(", ") }
}

/// The name that `--kv` takes.
fn name(ty: KvType) -> &'static str {
    match ty {
        KvType::F32 => "f32",
        KvType::F16 => "f16",
        KvType::Q8_0 => "q8_0",
    }
}
