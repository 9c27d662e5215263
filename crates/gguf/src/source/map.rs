//! A file mapped into memory.

use std::io;
use std::path::Path;

use memmap2::Mmap;

use super::{FileSource, Source};
use crate::{Error, Result};

/// A mapped file. If another process truncates the file while it is mapped, touching the lost pages
/// ends this process (SIGBUS); if another process rewrites it, the mapped bytes change. `read_at`
/// uses positioned reads, so only callers of `bytes` depend on the map.
#[derive(Debug)]
pub struct MapSource {
    file: FileSource,
    map: Mmap,
}

impl MapSource {
    /// Opens and maps a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = FileSource::open(path)?;
        // SAFETY: the map is read-only and private to this struct. Another process can still change
        // the file, and this cannot be prevented. The bytes are plain data for which any value is
        // valid; the type's documentation describes the effects.
        let map = unsafe { Mmap::map(file.file()) }.map_err(|error| Error::Map { error }.in_file(path))?;
        Ok(Self { file, map })
    }
}

impl Source for MapSource {
    fn len_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buf)
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.map)
    }
}
