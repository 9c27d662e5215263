//! A part of a source as a reader.

use gguf::Source;
use std::io;

/// The bytes of a source from the offset `at` on. `seen` takes the bytes that were read.
pub(super) struct Bytes<'a, F> {
    source: &'a dyn Source,
    at: u64,
    seen: F,
}

/// Bytes that are read at a time.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

impl<F: FnMut(&[u8])> io::Read for Bytes<'_, F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len_bytes().saturating_sub(self.at);
        let len = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.source.read_at(self.at, &mut into[..len])?;
        self.at += len as u64;
        (self.seen)(&into[..len]);
        Ok(len)
    }
}

impl<'a, F> Bytes<'a, F> {
    pub fn new(source: &'a dyn Source, at: u64, seen: F) -> Self {
        Self { source, at, seen }
    }
}
