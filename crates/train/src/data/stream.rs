//! Examples from a stream, once and in the order given.

use super::{Counts, DataOptions, Texts};
use crate::batch::Document;
use crate::error::Error;
use std::io::BufRead;

/// Examples that are read once, such as those of stdin.
pub struct Stream {}

impl Stream {
    /// Reads examples as [`Data::open`](super::Data::open) does; `name` is the file in errors.
    #[must_use]
    pub fn new(name: &str, from: Box<dyn BufRead + Send>, texts: Texts, options: &DataOptions) -> Self {
        todo!()
    }

    /// The documents of the next `examples` examples; fewer at the end, then none.
    ///
    /// # Errors
    /// [`Error::Data`] and [`Error::Read`].
    pub fn next(&mut self, examples: u32) -> Result<Vec<Document>, Error> {
        todo!()
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        todo!()
    }
}
