//! A file whose bytes are awaited: from a network, or from a browser's file objects.

use std::io;
use std::ops::Range;

use crate::{AsyncSource, Error, Gguf, Result, Source, SparseSource};

/// The largest range that one read fetches.
const FETCH_BYTES: u64 = 4 << 20;

/// The parts of a file (one, if it is not split), and the ranges of them that are in memory. The
/// code that reads a [`Source`] needs no change: [`Remote::with`] fetches what it lacks.
pub struct Remote<S> {
    parts: Vec<Part<S>>,
}

struct Part<S> {
    /// Offset of the part in the joined file.
    start: u64,
    source: S,
    held: SparseSource,
}

impl<S: AsyncSource> Remote<S> {
    /// Reads the headers of all parts, in order, and no tensor.
    pub async fn open(sources: Vec<S>) -> Result<(Self, Gguf)> {
        let mut start = 0u64;
        let part = |source: S| {
            let (at, held) = (start, SparseSource::new(source.len_bytes()));
            start = start.saturating_add(source.len_bytes());
            Part { start: at, source, held }
        };
        let this = Self { parts: sources.into_iter().map(part).collect() };
        let held = |part: &Part<S>| Box::new(part.held.clone()) as Box<dyn Source>;
        let gguf = this
            .with(|| match this.parts.as_slice() {
                [part] => Gguf::from_source(held(part)),
                parts => Gguf::from_parts(parts.iter().map(held).collect()),
            })
            .await?;
        Ok((this, gguf))
    }

    /// Calls `f` again and again, until it has all bytes that it reads. Each time, the range that
    /// it lacks is fetched and held.
    pub async fn with<T, E: From<Error>>(&self, mut f: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        loop {
            let result = f();
            let lacking = self.parts.iter().find_map(|part| part.held.take_lack().map(|range| (part, range)));
            let (Err(_), Some((part, range))) = (&result, lacking) else { return result };
            part.fetch(range).await?;
        }
    }

    /// Holds bytes of the joined file that came another way. They lie within one part.
    pub fn hold(&self, offset: u64, bytes: &[u8]) {
        let at = self.parts.partition_point(|part| part.end() <= offset);
        self.parts.get(at).into_iter().for_each(|part| part.held.hold(offset - part.start, bytes));
    }

    /// Frees the bytes that are held.
    pub fn clear(&self) {
        self.parts.iter().for_each(|part| part.held.clear());
    }
}

/// The joined parts.
impl<S: AsyncSource> AsyncSource for Remote<S> {
    fn len_bytes(&self) -> u64 {
        self.parts.last().map_or(0, Part::end)
    }

    async fn read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            let at = self.parts.partition_point(|part| part.end() <= offset);
            let part = self.parts.get(at).ok_or(io::ErrorKind::UnexpectedEof)?;
            let left = usize::try_from(part.end() - offset).unwrap_or(usize::MAX).min(buf.len());
            let (now, later) = buf.split_at_mut(left);
            part.source.read_at(offset - part.start, now).await?;
            offset += now.len() as u64;
            buf = later;
        }
        Ok(())
    }
}

impl<S: AsyncSource> Part<S> {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.source.len_bytes())
    }

    async fn fetch(&self, range: Range<u64>) -> Result<()> {
        let mut buf = vec![];
        for offset in range.clone().step_by(FETCH_BYTES as usize) {
            buf.resize((range.end - offset).min(FETCH_BYTES) as usize, 0);
            let len = buf.len();
            self.source.read_at(offset, &mut buf).await.map_err(|error| Error::Read { offset, len, error })?;
            self.held.hold(offset, &buf);
        }
        Ok(())
    }
}
