//! Examples from a stream, once and in the order given.

use super::reader::{Kind, Place, Reader, fill};
use super::{Counts, DataOptions, Texts};
use crate::batch::Document;
use crate::error::Error;
use std::io::BufRead;

/// Examples that are read once, such as those of stdin.
pub struct Stream {
    name: String,
    input: Input,
    texts: Texts,
    options: DataOptions,
    counts: Counts,
}

/// Bytes, before and after the first of them told what they are.
enum Input {
    New(Option<Box<dyn BufRead + Send>>),
    Begun(Reader<Box<dyn BufRead + Send>>),
}

impl Stream {
    /// Reads examples as [`Data::new`](super::Data::new) does; `name` is the file in errors.
    #[must_use]
    pub fn new(name: &str, from: Box<dyn BufRead + Send>, texts: Texts, options: &DataOptions) -> Self {
        let (name, input, options) = (name.to_string(), Input::New(Some(from)), options.clone());
        Self { name, input, texts, options, counts: Counts::default() }
    }

    /// The documents of the next `examples` examples; of fewer at the end, then none.
    ///
    /// # Errors
    /// [`Error::Data`] and [`Error::Read`].
    pub fn next(&mut self, examples: u32) -> Result<Vec<Document>, Error> {
        let unread = |error: std::io::Error| Error::Read { file: self.name.clone(), reason: error.to_string() };
        if let Input::New(from) = &mut self.input {
            let kind = from.as_mut().map(|from| fill(from).map(|begins| Kind::of(&self.name, begins)));
            let Some((kind, from)) = kind.transpose().map_err(unread)?.zip(from.take()) else { return Ok(vec![]) };
            self.input = Input::Begun(Reader::new(from, kind, Place::START));
        }
        let Input::Begun(reader) = &mut self.input else { return Ok(vec![]) };
        let (mut documents, end) = (vec![], self.counts.examples + u64::from(examples));
        while self.counts.examples < end {
            let Some(read) = reader.next(&self.texts, &self.options).map_err(unread)? else { break };
            documents.extend(self.counts.take(&self.name, read, self.options.skip_bad)?);
        }
        Ok(documents)
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
