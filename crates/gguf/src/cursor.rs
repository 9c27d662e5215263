//! A forward reader of the header that never trusts a length.

use std::ops::Range;

use crate::{Error, NameProblem, Result, Source};

/// The largest header that is read. The largest vocabularies known need a tenth of it.
pub const MAX_HEADER_BYTES: u64 = 256 << 20;

/// The least that one read fetches.
const FIRST_READ: u64 = 64 << 10;

/// Reads the header in place from memory, or through a buffer that grows with what was parsed and never beyond the file.
pub struct Cursor<'s> {
    source: &'s dyn Source,
    memory: Option<&'s [u8]>,
    buffer: Vec<u8>,
    pos: usize,
    len: u64,
    /// Whether counts and lengths take 8 bytes or, in version 1, 4.
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

    /// What was read, if it was not read in place.
    pub fn into_buffer(mut self) -> Option<Vec<u8>> {
        self.buffer.truncate(self.pos);
        self.buffer.shrink_to_fit();
        self.memory.is_none().then_some(self.buffer)
    }

    /// Steps over `len` bytes and returns where they are.
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

    /// A count, length or dimension in the width of the file's version.
    pub fn length(&mut self, what: &'static str) -> Result<u64> {
        if self.wide { self.u64(what) } else { self.u32(what).map(u64::from) }
    }

    /// Bytes that a length takes.
    pub fn length_bytes(&self) -> u64 {
        if self.wide { 8 } else { 4 }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let range = self.take(N as u64, what)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes()[range]);
        Ok(bytes)
    }

    /// A number of things of at least `least` bytes each, which the rest of the file must be able to hold.
    pub fn count(&mut self, what: &'static str, least: u64) -> Result<usize> {
        let count = self.length(what)?;
        self.check_count(what, count, least)?;
        Ok(count as usize)
    }

    /// Fails unless `count` things of at least `least` bytes each fit in the rest of the file and of the header.
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
