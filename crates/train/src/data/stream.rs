//! Examples from a stream, once and in the order given.

use super::files::Tally;
use super::gzip::Unpacked;
use super::kind::{HEAD_BYTES, Holds, holds, inside};
use super::lines::{Place, fill};
use super::options::{Counts, DataOptions};
use super::reader::Reader;
use super::texts::Texts;
use crate::batch::Document;
use crate::error::Error;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Examples that are read once, such as those of stdin.
pub struct Stream {
    name: String,
    input: Input,
    texts: Texts,
    options: DataOptions,
    tally: Tally,
}

type Bytes = Box<dyn BufRead + Send>;

/// Bytes, before and after the first of them told what they are.
enum Input {
    New(Option<Bytes>),
    Begun(Reader<Bytes>),
}

impl Stream {
    /// Reads examples as [`Data::new`](super::Data::new) does; `name` is the file in errors.
    #[must_use]
    pub fn new(name: &str, from: Box<dyn BufRead + Send>, texts: Texts, options: &DataOptions) -> Self {
        let (name, input, options) = (name.to_string(), Input::New(Some(from)), options.clone());
        Self { name, input, texts, options, tally: Tally::default() }
    }

    /// The documents of the next `examples` examples; of fewer at the end, then none.
    ///
    /// # Errors
    /// [`Error::Data`] and [`Error::Read`].
    pub fn next(&mut self, examples: u32) -> Result<Vec<Document>, Error> {
        let Self { name, input, texts, options, tally } = self;
        let unread = |error: io::Error| Error::Read { file: name.clone(), reason: error.to_string() };
        if let Input::New(from) = input {
            let Some(from) = from.take() else { return Ok(vec![]) };
            *input = Input::Begun(begin(name, from).map_err(unread)?);
        }
        let Input::Begun(reader) = input else { return Ok(vec![]) };
        let (mut documents, end) = (vec![], tally.counts.examples + u64::from(examples));
        while tally.counts.examples < end {
            let Some(read) = reader.next(texts, options).map_err(unread)? else { break };
            documents.extend(tally.take(name, read, options.skip_bad)?);
        }
        Ok(documents)
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.tally.counts
    }

    /// Columns of lines and keys of messages that had no effect so far, by name.
    #[must_use]
    pub fn unused(&self) -> Vec<&str> {
        self.tally.unused.iter().map(String::as_str).collect()
    }
}

/// A reader of the form that the first bytes tell.
fn begin(name: &str, from: Bytes) -> io::Result<Reader<Bytes>> {
    // A command for a stream needs the file from which it came.
    let name = if name == "stdin" { "FILE" } else { name };
    let (head, from) = peeked(from)?;
    let (kind, from) = match holds(name, &head).map_err(io::Error::other)? {
        Holds::Examples(kind) => (kind, from),
        Holds::Gzip => {
            let (head, from) = peeked(Box::new(BufReader::new(Unpacked::new(from))))?;
            (inside(name, &head).map_err(io::Error::other)?, from)
        }
    };
    Ok(Reader::new(from, kind, Place::START))
}

/// The first bytes of a stream, and the stream as it was.
fn peeked(mut from: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
    let mut head = vec![];
    while head.len() < HEAD_BYTES {
        let bytes = fill(&mut *from)?;
        let taken = bytes.len().min(HEAD_BYTES - head.len());
        if taken == 0 {
            break;
        }
        head.extend_from_slice(&bytes[..taken]);
        from.consume(taken);
    }
    Ok((head.clone(), Box::new(Cursor::new(head).chain(from))))
}
