//! The elements of one list of JSON, one after the other, in bounded memory.

use super::lines::{LINE_BYTES, Place, fill};
use std::io::{self, BufRead};

/// What comes next in a list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// The bracket that opens it.
    Before,
    /// The first element, or the end of an empty list.
    First,
    /// An element.
    Element,
    /// Blanks.
    Behind,
    /// Nothing: all is read.
    Done,
}

/// An element, up to the byte that ends it.
#[derive(Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Whether the element ends before this byte.
    fn ends(&mut self, byte: u8) -> bool {
        if self.in_string {
            let closes = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !closes;
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b',' | b']' if self.depth == 0 => return true,
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}

impl List {
    /// Holds the next element. Returns its place, and the reason if it is none; `None` at the end.
    pub fn next(
        &mut self,
        from: &mut dyn BufRead,
        place: &mut Place,
        held: &mut Vec<u8>,
    ) -> io::Result<Option<(Place, Result<(), String>)>> {
        held.clear();
        loop {
            if *self == Self::Done {
                return Ok(None);
            }
            let byte = pass_blanks(from, place)?;
            let at = *place;
            let byte = match (*self, byte) {
                (Self::Behind, None) => {
                    *self = Self::Done;
                    return Ok(None);
                }
                (_, None) => {
                    *self = Self::Done;
                    return Ok(Some((at, Err("the list does not end: its last byte is no ]".to_string()))));
                }
                (_, Some(byte)) => byte,
            };
            *self = match (*self, byte) {
                (Self::Before, b'[') => take(from, place, Self::First)?,
                (Self::First, b']') => take(from, place, Self::Behind)?,
                (Self::First | Self::Element, _) => {
                    let whole = element(from, place, held)?;
                    *self = match fill(from)?.first() {
                        Some(b',') => take(from, place, Self::Element)?,
                        Some(_) => take(from, place, Self::Behind)?,
                        None => Self::Element,
                    };
                    let longer = || format!("the element has more than {} MiB", LINE_BYTES >> 20);
                    return Ok(Some((at, if whole { Ok(()) } else { Err(longer()) })));
                }
                _ => {
                    *self = Self::Done;
                    return Ok(Some((at, Err("more text follows the end of the list".to_string()))));
                }
            };
        }
    }
}

/// Passes one byte.
fn take(from: &mut dyn BufRead, place: &mut Place, then: List) -> io::Result<List> {
    if let Some(byte) = fill(from)?.first().copied() {
        place.pass(&[byte]);
        from.consume(1);
    }
    Ok(then)
}

/// Passes blanks. Returns the first byte behind them.
fn pass_blanks(from: &mut dyn BufRead, place: &mut Place) -> io::Result<Option<u8>> {
    loop {
        let bytes = fill(from)?;
        let blanks = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = bytes.get(blanks).copied();
        place.pass(&bytes[..blanks]);
        from.consume(blanks);
        if next.is_some() || blanks == 0 {
            return Ok(next);
        }
    }
}

/// Holds an element, or as much of it as a line may have. Returns whether it is whole.
fn element(from: &mut dyn BufRead, place: &mut Place, held: &mut Vec<u8>) -> io::Result<bool> {
    let (mut scan, mut whole) = (Scan::default(), true);
    loop {
        let bytes = fill(from)?;
        let end = bytes.iter().position(|byte| scan.ends(*byte));
        let taken = end.unwrap_or(bytes.len());
        let kept = taken.min(LINE_BYTES - held.len());
        held.extend_from_slice(&bytes[..kept]);
        whole &= kept == taken;
        place.pass(&bytes[..taken]);
        from.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(whole);
        }
    }
}
