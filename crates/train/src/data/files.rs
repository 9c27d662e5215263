//! Files of examples, by an index.

use super::{Counts, DataOptions, Texts};
use crate::batch::Document;
use crate::checkpoint::Facts;
use crate::error::Error;
use gguf::Source;
use std::path::PathBuf;

/// Examples in files, in any order. Memory does not grow with the number of examples. Clones share
/// the files.
#[derive(Clone)]
pub struct Data {}

/// Called with the bytes that were checked and all bytes.
pub(super) type Checked<'a> = &'a dyn Fn(u64, u64);

impl Data {
    /// Reads files once: checks every line, counts, and keeps an index. Files whose name ends in
    /// `.jsonl` or `.json`, and others that begin with `{`, have an example in each line. Other
    /// files are text, cut into documents of [`DataOptions::length`] tokens.
    ///
    /// # Errors
    /// [`Error::Data`] with the file, the line and the reason; [`Error::Read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(files: &[PathBuf], texts: Texts, options: &DataOptions, progress: Checked<'_>) -> Result<Self, Error> {
        todo!("{}", files.len())
    }

    /// As [`Data::open`], for bytes from elsewhere, with the names of files.
    ///
    /// # Errors
    /// As [`Data::open`].
    pub fn new(files: Vec<(String, Box<dyn Source>)>, texts: Texts, options: &DataOptions, progress: Checked<'_>) -> Result<Self, Error> {
        todo!()
    }

    /// Number of examples; at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        todo!()
    }

    /// The documents of the n-th example; at least one.
    ///
    /// # Errors
    /// [`Error::Read`], also if the file has changed since it was checked.
    ///
    /// # Panics
    /// If `n` is not below [`Data::len`].
    pub fn documents(&self, n: u64) -> Result<Vec<Document>, Error> {
        todo!()
    }

    /// What the files have, whole.
    #[must_use]
    pub fn counts(&self) -> Counts {
        todo!()
    }

    /// How texts become ids.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        todo!()
    }

    /// SHA-256 of the bytes of all files, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        todo!()
    }

    /// What the documents depend on, for checkpoints: the bytes, the options, the split.
    #[must_use]
    pub fn facts(&self) -> Facts {
        todo!()
    }

    /// Two parts: for training, and `share` of the examples for validation, at least one. Each
    /// stretch of 1 / `share` examples gives one that `seed` chooses, so that both parts keep the
    /// order.
    ///
    /// # Errors
    /// [`Error::Split`] if `share` is not above 0 and at most 0.5, or there is one example only.
    pub fn split(&self, share: f64, seed: u64) -> Result<(Self, Self), Error> {
        todo!()
    }
}
