//! The parts of a split file as one source.

use std::io;

use super::Source;

/// Sources one after another: part n begins where part n - 1 ends.
pub struct JoinedSource {
    /// Each part with the offset of its end.
    parts: Vec<(u64, Box<dyn Source>)>,
}

impl JoinedSource {
    /// Joins the parts in order.
    pub fn new(parts: Vec<Box<dyn Source>>) -> Self {
        let ends = parts.into_iter().scan(0u64, |end, part| {
            *end = end.saturating_add(part.len_bytes());
            Some((*end, part))
        });
        Self { parts: ends.collect() }
    }

    /// The part that holds `offset`, and the offset where this part begins.
    fn part(&self, offset: u64) -> Option<(u64, &dyn Source)> {
        let i = self.parts.partition_point(|(end, _)| *end <= offset);
        let (end, part) = self.parts.get(i)?;
        Some((end - part.len_bytes(), part.as_ref()))
    }
}

impl Source for JoinedSource {
    fn len_bytes(&self) -> u64 {
        self.parts.last().map_or(0, |(end, _)| *end)
    }

    fn read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            let (start, part) = self.part(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
            let left = start + part.len_bytes() - offset;
            let (now, later) = buf.split_at_mut(usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len())));
            part.read_at(offset - start, now)?;
            offset += now.len() as u64;
            buf = later;
        }
        Ok(())
    }

    fn slice(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let (start, part) = self.part(offset)?;
        part.slice(offset - start, len)
    }
}
