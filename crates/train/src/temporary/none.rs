//! A browser has no temporary files.

use gguf::Source;
use std::io::Read;

/// Stores nothing. The error says so.
pub(crate) fn stored(_from: &mut dyn Read) -> Result<Box<dyn Source>, String> {
    Err("it is packed by gzip; unpack it first".to_string())
}
