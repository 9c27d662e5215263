//! Lines of bounded length, and byte offsets in a file with their lines.

use std::io::{self, BufRead};

/// Bytes of a line at most.
pub(super) const LINE_BYTES: usize = 16 << 20;

/// Where an example begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The offset in bytes from the beginning.
    pub at: u64,
    /// The number of the line, from 1.
    pub line: u64,
}

impl Place {
    pub const START: Self = Self { at: 0, line: 1 };

    pub fn pass(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        self.line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

/// Whether a line was kept whole.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Bounded {
    Whole,
    /// It has more than [`LINE_BYTES`], and only its beginning was kept.
    Longer,
}

/// Reads a line, its end among it, and keeps up to [`LINE_BYTES`]. Returns the bytes that were
/// read.
pub(super) fn read_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<(u64, Bounded)> {
    let (mut read, mut bounded) = (0, Bounded::Whole);
    loop {
        let bytes = fill(from)?;
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(bytes.len());
        let kept = taken.min(LINE_BYTES - line.len());
        line.extend_from_slice(&bytes[..kept]);
        if kept < taken {
            bounded = Bounded::Longer;
        }
        from.consume(taken);
        read += taken as u64;
        if end.is_some() || taken == 0 {
            return Ok((read, bounded));
        }
    }
}

/// The bytes that were read ahead, or the next ones; none at the end.
pub(super) fn fill(from: &mut dyn BufRead) -> io::Result<&[u8]> {
    while let Err(error) = from.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    from.fill_buf()
}

/// The reason against a line with more than [`LINE_BYTES`].
pub(super) fn too_long() -> String {
    format!("the line has more than {} MiB", LINE_BYTES >> 20)
}
