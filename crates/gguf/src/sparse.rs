//! Ranges of a file in memory, for hosts that can only fetch.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Source;

/// The ranges of a file that are in memory. A read of other bytes fails, and the source remembers
/// the range that it lacks. A clone shares the ranges.
#[derive(Clone)]
pub struct SparseSource(Arc<Sparse>);

struct Sparse {
    len: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The ranges by their offset. Ranges do not overlap.
    held: BTreeMap<u64, Vec<u8>>,
    lacks: Option<Range<u64>>,
}

impl State {
    /// The held range that begins at `offset` or before it.
    fn before(&self, offset: u64) -> Option<(u64, &[u8])> {
        self.held.range(..=offset).next_back().map(|(at, bytes)| (*at, bytes.as_slice()))
    }

    /// The held bytes from `offset` on, up to the end of their range.
    fn from(&self, offset: u64) -> Option<&[u8]> {
        let (at, bytes) = self.before(offset)?;
        bytes.get(usize::try_from(offset - at).ok()?..).filter(|bytes| !bytes.is_empty())
    }
}

impl SparseSource {
    /// A file of this length, of which nothing is held.
    pub fn new(len: u64) -> Self {
        Self(Arc::new(Sparse { len, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds these bytes of the file. Bytes that are held already stay.
    pub fn hold(&self, mut offset: u64, mut bytes: &[u8]) {
        let mut state = self.state();
        while !bytes.is_empty() {
            let known = state.from(offset).map(<[u8]>::len);
            let free = state.held.range(offset..).next().map_or(u64::MAX, |(at, _)| at - offset);
            let free = usize::try_from(free).unwrap_or(usize::MAX);
            let len = known.unwrap_or(free).min(bytes.len());
            if known.is_none() {
                state.held.insert(offset, bytes[..len].to_vec());
            }
            offset += len as u64;
            bytes = &bytes[len..];
        }
    }

    /// The range that the last failed read lacked, once.
    pub fn take_lack(&self) -> Option<Range<u64>> {
        self.state().lacks.take()
    }

    /// Frees all bytes.
    pub fn clear(&self) {
        self.state().held.clear();
    }
}

impl Source for SparseSource {
    fn len_bytes(&self) -> u64 {
        self.0.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|&end| end <= self.0.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut state = self.state();
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let Some(bytes) = state.from(at) else {
                state.lacks = Some(at..end);
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "these bytes are not fetched yet"));
            };
            let len = bytes.len().min(rest.len());
            rest[..len].copy_from_slice(&bytes[..len]);
            at += len as u64;
            rest = &mut rest[len..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_join_ranges_and_tell_what_is_lacking() {
        let source = SparseSource::new(20);
        let mut buf = [0; 6];
        assert!(source.read_at(2, &mut buf).is_err());
        assert_eq!(source.take_lack(), Some(2..8));
        assert_eq!(source.take_lack(), None);
        source.hold(0, &[0, 1, 2, 3]);
        assert!(source.read_at(2, &mut buf).is_err());
        assert_eq!(source.take_lack(), Some(4..8));
        source.hold(6, &[6, 7, 8]);
        // Overlaps both ranges and fills the gap.
        source.hold(3, &[9, 4, 5, 9]);
        source.read_at(2, &mut buf).unwrap();
        assert_eq!(buf, [2, 3, 4, 5, 6, 7]);
        assert_eq!(source.read_at(18, &mut buf).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(source.take_lack(), None, "no fetch gives bytes behind the end");
        source.clear();
        assert!(source.read_at(2, &mut buf).is_err());
    }
}
