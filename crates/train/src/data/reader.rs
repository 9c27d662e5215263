//! Reads examples one after the other, in bounded memory.

use super::example::Example;
use super::kind::{BOM, Kind};
use super::lines::{Bounded, LINE_BYTES, Place, fill, read_line, too_long};
use super::list::List;
use super::options::DataOptions;
use super::text;
use super::texts::Texts;
use std::io::{self, BufRead};

/// What was read.
pub(super) struct Read {
    pub place: Place,
    /// The example, or why it cannot be used.
    pub example: Result<Example, String>,
}

/// Reads examples from a byte offset on.
pub(super) struct Reader<R> {
    from: R,
    kind: Kind,
    /// Where a list of JSON stands.
    list: List,
    /// The offset and the line of the first byte of `held`.
    place: Place,
    /// Bytes that are read and not passed yet: of a line, or of text ahead.
    held: Vec<u8>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from the bytes at `place` on.
    pub fn new(from: R, kind: Kind, place: Place) -> Self {
        // Before the first element stands at least the bracket.
        let list = if place == Place::START { List::Before } else { List::Element };
        Self { from, kind, list, place, held: vec![] }
    }

    /// The next example; `None` at the end.
    pub fn next(&mut self, texts: &Texts, options: &DataOptions) -> io::Result<Option<Read>> {
        self.pass_bom()?;
        if self.kind == Kind::Text {
            return self.text(texts, options);
        }
        let Some((place, held)) = self.object()? else { return Ok(None) };
        let example = held.and_then(|()| texts.example(&self.held, options));
        Ok(Some(Read { place, example }))
    }

    /// Passes an example that can be used, where every one can. Returns whether there was one.
    pub fn pass(&mut self, texts: &Texts, options: &DataOptions) -> io::Result<bool> {
        match self.kind {
            Kind::Lines | Kind::Array => {
                self.pass_bom()?;
                Ok(self.object()?.is_some())
            }
            Kind::Text => Ok(self.next(texts, options)?.is_some()),
        }
    }

    fn pass_bom(&mut self) -> io::Result<()> {
        if self.place.at == 0 && self.held.is_empty() && fill(&mut self.from)?.starts_with(BOM) {
            self.from.consume(BOM.len());
            self.place.pass(BOM);
        }
        Ok(())
    }

    /// Holds the next object: a line, or an element of the list. An error is the reason why it
    /// cannot be used.
    fn object(&mut self) -> io::Result<Option<(Place, Result<(), String>)>> {
        if self.kind == Kind::Array {
            return self.list.next(&mut self.from, &mut self.place, &mut self.held);
        }
        let line = self.line()?;
        Ok(line.map(|(place, bounded)| (place, if bounded == Bounded::Whole { Ok(()) } else { Err(too_long()) })))
    }

    /// Holds the next line that is not blank.
    fn line(&mut self) -> io::Result<Option<(Place, Bounded)>> {
        loop {
            let place = self.place;
            self.held.clear();
            let (read, bounded) = read_line(&mut self.from, &mut self.held)?;
            if read == 0 {
                return Ok(None);
            }
            self.place = Place { at: place.at + read, line: place.line + 1 };
            if !self.held.trim_ascii().is_empty() {
                return Ok(Some((place, bounded)));
            }
        }
    }

    /// The next document of a text.
    fn text(&mut self, texts: &Texts, options: &DataOptions) -> io::Result<Option<Read>> {
        let place = self.place;
        let mut window = text::window(options.length);
        loop {
            let ended = self.hold(window)?;
            if self.held.is_empty() {
                return Ok(None);
            }
            let valid = match std::str::from_utf8(&self.held) {
                Ok(valid) => valid,
                Err(error) if error.valid_up_to() == 0 && (ended || error.error_len().is_some()) => {
                    self.pass_line()?;
                    return Ok(Some(Read { place, example: Err("not UTF-8".to_string()) }));
                }
                Err(error) => std::str::from_utf8(&self.held[..error.valid_up_to()]).unwrap_or_default(),
            };
            // A text ends at its end, and before what is no text.
            let last = ended && valid.len() == self.held.len();
            let whole = ended || valid.len() + 4 <= self.held.len();
            match texts.first(valid, options.length, whole || window >= LINE_BYTES) {
                Ok(Some(len)) => {
                    let example = texts.stretch(&valid[..len], last && len == valid.len(), options);
                    self.place.pass(&self.held[..len]);
                    self.held.drain(..len);
                    return Ok(Some(Read { place, example }));
                }
                Ok(None) => window *= 2,
                Err(reason) => {
                    self.pass_line()?;
                    return Ok(Some(Read { place, example: Err(reason) }));
                }
            }
        }
    }

    /// Holds `bytes` bytes, or all that are left. Returns whether these are all.
    fn hold(&mut self, bytes: usize) -> io::Result<bool> {
        while self.held.len() < bytes {
            let more = fill(&mut self.from)?;
            if more.is_empty() {
                return Ok(true);
            }
            let taken = more.len().min(bytes - self.held.len());
            self.held.extend_from_slice(&more[..taken]);
            self.from.consume(taken);
        }
        Ok(fill(&mut self.from)?.is_empty())
    }

    /// Passes what is left of a line.
    fn pass_line(&mut self) -> io::Result<()> {
        if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            self.place.pass(&self.held[..=end]);
            self.held.drain(..=end);
            return Ok(());
        }
        self.place.pass(&self.held);
        self.held.clear();
        let mut rest = vec![];
        let (read, _) = read_line(&mut self.from, &mut rest)?;
        self.place = Place { at: self.place.at + read, line: self.place.line + 1 };
        Ok(())
    }
}
