//! Why a session could not be saved or restored.

use crate::arch::Cache;
use cpu_ref::KvType;
use std::io;

/// The errors of [`Session::save`](crate::Session::save) and
/// [`Session::load`](crate::Session::load).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("cannot write the session: {error}")]
    Write { error: io::Error },
    #[error("cannot read the saved session: {error}")]
    Read { error: io::Error },
    /// The first bytes are not a snapshot's.
    #[error("this is not a saved session; take a file that a session was saved to")]
    Magic,
    /// Another version of the format, usually a later one.
    #[error(
        "the saved session has version {found} of the format; \
         this program reads version {known}: update the program or save the session again"
    )]
    Version { found: u32, known: u32 },
    /// The bytes end too early.
    #[error("the saved session is cut short in its {part}: {needed} bytes needed, {found} left")]
    Truncated { part: &'static str, needed: u64, found: u64 },
    /// A length field is larger than possible.
    #[error(
        "the saved session states {found} bytes of {part}, but at most {limit} are possible; \
         it is damaged"
    )]
    Size { part: &'static str, found: u64, limit: u64 },
    /// The bytes differ from the bytes that were written.
    #[error("the checksum of the saved session's {part} differs: it was damaged or altered")]
    Checksum { part: &'static str },
    /// A field has a value that no writer of this version produces.
    #[error("the saved session's {part} has an impossible value")]
    Field { part: &'static str },
    #[error("the session was saved with a {found} model; this one is {expected}")]
    Architecture { found: String, expected: &'static str },
    /// The digest of the header, the tensors or the samples differs.
    #[error("the session was saved with another model file: its digest differs")]
    Model,
    /// Keys and values were computed with other adapters, other scales or another order of
    /// adapters.
    #[error(
        "the session was saved under {}, this one is under {}{}; \
         apply the same adapters in the same order",
        list(found), list(expected), if found == expected { " of other contents" } else { "" }
    )]
    Adapters { found: Vec<String>, expected: Vec<String> },
    #[error(
        "the session was saved with a KV cache of {found}, this one has {expected}; choose the KV \
         type {found}"
    )]
    KvType { found: KvType, expected: KvType },
    #[error("the session was saved with {}; this model has {}", caches(found), caches(expected))]
    Caches { found: Vec<Cache>, expected: Vec<Cache> },
}

fn list(adapters: &[String]) -> String {
    if adapters.is_empty() { "no adapters".to_string() } else { adapters.join(", ") }
}

/// The name of the type.
/// Caches in few words: neighbours that are equal are counted.
fn caches(caches: &[Cache]) -> String {
    let groups: Vec<_> = caches
        .chunk_by(|a, b| a == b)
        .map(|group| {
            let Cache { width, window } = group[0];
            let window = window.map_or_else(String::new, |window| format!(" and a window of {window}"));
            format!("{} caches of width {width}{window}", group.len())
        })
        .collect();
    if groups.is_empty() { "no caches".to_string() } else { groups.join(", ") }
}
