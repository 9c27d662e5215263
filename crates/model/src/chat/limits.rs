//! What a template may take. A template is a program from a file, so each bound is a count: no
//! clock, thread or signal is needed.

use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::{Error, ErrorKind};

use super::ChatError;

/// Bytes of a template's text.
pub(super) const TEMPLATE_BYTES: usize = 1 << 20;
/// Blocks, brackets and chained operators around any position in a template; levels of a value.
pub(super) const LEVELS: usize = 64;
/// Bytes of all values that one rendering makes.
const VALUE_BYTES: u64 = 64 << 20;
/// Bytes that one rendering prints, captured ones included.
const OUTPUT_BYTES: u64 = 16 << 20;
/// Instructions of the engine that one rendering takes.
pub(super) const INSTRUCTIONS: u64 = 8_000_000;
/// Work within instructions: elements that are visited, and bytes in units of [`BYTES_PER_WORK`].
const WORK: u64 = 8_000_000;
/// Bytes that are copied or searched in the time in which one element is visited.
const BYTES_PER_WORK: u64 = 64;

/// Attributes of a namespace at most.
pub(super) const ATTRIBUTES: u64 = 32;
/// The reason for the limit's refusal.
pub(super) const MANY_ATTRIBUTES: &str = "a namespace of more than 32 attributes";

/// What one rendering has taken so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    values: AtomicU64,
    output: AtomicU64,
    work: AtomicU64,
}

/// A limit that was passed; travels inside minijinja's error.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than {limit}")]
pub(super) struct Exceeded {
    limit: &'static str,
}

impl From<Exceeded> for ChatError {
    fn from(Exceeded { limit }: Exceeded) -> Self {
        ChatError::Limit { limit }
    }
}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Self {
        Error::new(ErrorKind::InvalidOperation, exceeded.to_string()).with_source(exceeded)
    }
}

pub(super) const TOO_LONG: Exceeded = Exceeded { limit: "1 MiB of text" };
pub(super) const TOO_DEEP: Exceeded = Exceeded { limit: "64 nested blocks, brackets and chained operators" };
pub(super) const TOO_NESTED: Exceeded = Exceeded { limit: "64 levels of values within values" };
pub(super) const TOO_SLOW: Exceeded = Exceeded { limit: "8 million instructions" };

/// Refuses a template that is too long to read.
pub(super) fn check_length(source: &str) -> Result<(), ChatError> {
    if source.len() > TEMPLATE_BYTES { Err(TOO_LONG.into()) } else { Ok(()) }
}

impl Budget {
    fn take(counter: &AtomicU64, amount: u64, most: u64, exceeded: Exceeded) -> Result<(), Error> {
        let before = counter.load(Ordering::Relaxed);
        let after = before.saturating_add(amount);
        counter.store(after, Ordering::Relaxed);
        if after > most { Err(exceeded.into()) } else { Ok(()) }
    }

    /// Counts bytes that an instruction is about to make.
    pub fn value(&self, bytes: u64) -> Result<(), Error> {
        Self::take(&self.values, bytes, VALUE_BYTES, Exceeded { limit: "64 MiB of values" })?;
        self.bytes_read(bytes)
    }

    /// Counts bytes that are about to be printed.
    pub fn output(&self, bytes: u64) -> Result<(), Error> {
        Self::take(&self.output, bytes, OUTPUT_BYTES, Exceeded { limit: "16 MiB of output" })?;
        self.bytes_read(bytes)
    }

    /// Counts bytes that are searched or compared.
    pub fn bytes_read(&self, bytes: u64) -> Result<(), Error> {
        self.work(bytes / BYTES_PER_WORK)
    }

    /// Counts elements that are visited.
    pub fn work(&self, elements: u64) -> Result<(), Error> {
        Self::take(&self.work, elements, WORK, Exceeded { limit: "8 million elements visited" })
    }

    /// Elements visited so far, bytes counted in.
    #[cfg(test)]
    pub fn worked(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// Thousandths of each limit that were taken: values, output, work.
    pub fn thousandths(&self) -> [u64; 3] {
        let of = |counter: &AtomicU64, most: u64| counter.load(Ordering::Relaxed).saturating_mul(1000) / most;
        [of(&self.values, VALUE_BYTES), of(&self.output, OUTPUT_BYTES), of(&self.work, WORK)]
    }
}
