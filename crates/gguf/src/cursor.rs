//! A forward reader of the header that never trusts a length.

use std::ops::Range;

use crate::{Error, NameProblem, Result, Source};

/// The largest header that is read. The largest known vocabularies need a tenth of it.
pub const MAX_HEADER_BYTES: u64 = 256 << 20;

/// The minimum number of bytes that one read fetches.
const FIRST_READ: u64 = 64 << 10;

/// Reads the header in place from memory, or through a buffer. The buffer grows with the parsed
/// part of the header and never beyond the size of the file.
pub struct Cursor<'s> {
    source: &'s dyn Source,
    memory: Option<&'s [u8]>,
    buffer: Vec<u8>,
    pos: usize,
    len: u64,
    /// True if counts and lengths take 8 bytes, false if they take 4 (version 1).
    pub wide: bool,
}

impl<'s> Cursor<'s> {
    pub fn new(source: &'s dyn Source) -> Self {
        let memory = source.is_memory().then(|| source.bytes()).flatten();
        let len = memory.map_or_else(|| source.len_bytes(), |bytes| bytes.len() as u64);
        Self { source, memory, buffer: Vec::new(), pos: 0, len, wide: true }
    }

    pub fn bytes(&self) -> &[u8] {
        self.memory.unwrap_or(&self.buffer)
    }

    pub fn pos(&self) -> u64 {
        self.pos as u64
    }

    /// Length of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes that were read, unless the header is read in place.
    pub fn into_buffer(mut self) -> Option<Vec<u8>> {
        self.buffer.truncate(self.pos);
        self.buffer.shrink_to_fit();
        self.memory.is_none().then_some(self.buffer)
    }

    /// Moves past `len` bytes and returns their range.
    pub fn take(&mut self, len: u64, what: &'static str) -> Result<Range<usize>> {
        let available = self.len - self.pos();
        if len > available {
            return Err(Error::Truncated { what, offset: self.pos(), needed: len, available });
        }
        let end = self.pos() + len;
        if end > MAX_HEADER_BYTES {
            return Err(Error::HeaderSize { offset: self.pos(), limit: MAX_HEADER_BYTES });
        }
        self.fill(end)?;
        let start = self.pos;
        self.pos = end as usize;
        Ok(start..self.pos)
    }

    fn fill(&mut self, end: u64) -> Result<()> {
        let had = self.buffer.len();
        if self.memory.is_some() || end <= had as u64 {
            return Ok(());
        }
        let target = end.max(had as u64 * 2).max(FIRST_READ).min(self.len) as usize;
        self.buffer.reserve_exact(target - had);
        self.buffer.resize(target, 0);
        let read = self.source.read_at(had as u64, &mut self.buffer[had..]);
        read.map_err(|error| Error::Read { offset: had as u64, len: target - had, error })
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count, length or dimension, in the width that the file's version uses.
    pub fn length(&mut self, what: &'static str) -> Result<u64> {
        if self.wide { self.u64(what) } else { self.u32(what).map(u64::from) }
    }

    /// Size of a length in bytes.
    pub fn length_bytes(&self) -> u64 {
        if self.wide { 8 } else { 4 }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let range = self.take(N as u64, what)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes()[range]);
        Ok(bytes)
    }

    /// Reads a count of items of at least `least` bytes each. Fails if the rest of the file cannot
    /// hold them.
    pub fn count(&mut self, what: &'static str, least: u64) -> Result<usize> {
        let count = self.length(what)?;
        self.check_count(what, count, least)?;
        Ok(count as usize)
    }

    /// Fails unless `count` items of at least `least` bytes each fit in the rest of the file and of
    /// the header limit.
    pub fn check_count(&self, what: &'static str, count: u64, least: u64) -> Result<()> {
        let available = self.len.min(MAX_HEADER_BYTES).saturating_sub(self.pos());
        match count.checked_mul(least) {
            Some(needed) if needed <= available => Ok(()),
            _ => Err(Error::Count { what, count, offset: self.pos(), available }),
        }
    }

    /// A string of any bytes.
    pub fn string(&mut self, what: &'static str) -> Result<Range<usize>> {
        let len = self.length(what)?;
        self.take(len, what)
    }

    /// A key or a tensor name: 1 to `limit` bytes of UTF-8.
    pub fn name(&mut self, what: &'static str, limit: u64) -> Result<Range<usize>> {
        let offset = self.pos();
        let bad = |problem| Error::Name { what, offset, problem };
        let bytes = self.length(what)?;
        match bytes {
            0 => return Err(bad(NameProblem::Empty)),
            _ if bytes > self.len - self.pos() => {}
            _ if bytes > limit => return Err(bad(NameProblem::TooLong { bytes, limit })),
            _ => {}
        }
        let range = self.take(bytes, what)?;
        if std::str::from_utf8(&self.bytes()[range.clone()]).is_err() {
            return Err(bad(NameProblem::NotUtf8));
        }
        Ok(range)
    }
}
