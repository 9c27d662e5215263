//! The options of sessions and of generations.

use crate::arch::Summary;
use crate::error::Error;
use crate::sampling::Sampling;
use cpu_ref::KvType;
use kernels::{PlanOptions, Precision};

/// Steps in flight on a GPU. They are enough to hide a read-back, and so few that a late stop
/// wastes little work.
pub(crate) const GPU_DEPTH: usize = 4;

/// The options of a session. The default is the fastest way on the executor, with a context length
/// of 8192.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Context length in tokens. `None` is [`DEFAULT_CONTEXT`], or the model's own context length
    /// if that is less.
    pub context: Option<u32>,
    /// Type of the KV cache.
    pub kv: KvType,
    /// Largest number of rows of a prefill step. 0 leaves the choice to
    /// [`Checked::settled`](crate::Checked::settled).
    pub chunk: u32,
    /// Number of sequences of a [`Batch`](crate::Batch). A session is one sequence.
    pub sequences: u32,
    /// Number of tokens at the start to keep when the context is full (at most half the context).
    /// The older half of the tokens behind them is dropped, and the rest is evaluated again. With
    /// `None` a full context is an error. A [`Batch`](crate::Batch) does not shift.
    pub shift: Option<u32>,
    /// Bytes that weights, KV cache and intermediates may take together. `None` asks the device.
    pub memory_bytes: Option<u64>,
    /// Precision and taps of the plans.
    pub plan: PlanOptions,
    /// Rows of the smallest plan between one row and a chunk. `None` leaves it to the executor.
    pub(crate) least_rows: Option<u32>,
}

/// The context length if none is given.
pub const DEFAULT_CONTEXT: u32 = 8192;

impl Default for SessionOptions {
    fn default() -> Self {
        let plan = PlanOptions::default();
        Self {
            context: None,
            kv: KvType::F16,
            chunk: 0,
            sequences: 1,
            shift: None,
            memory_bytes: None,
            plan,
            least_rows: None,
        }
    }
}

impl SessionOptions {
    /// Sets the context length in tokens. `None` is [`DEFAULT_CONTEXT`].
    #[must_use]
    pub fn context(self, positions: impl Into<Option<u32>>) -> Self {
        Self { context: positions.into(), ..self }
    }

    /// Sets the type of the KV cache.
    #[must_use]
    pub fn kv(self, kv: KvType) -> Self {
        Self { kv, ..self }
    }

    /// Sets the largest number of rows of a prefill step. 0 leaves the choice to the executor.
    #[must_use]
    pub fn chunk(self, rows: u32) -> Self {
        Self { chunk: rows, ..self }
    }

    /// Sets the number of sequences of a [`Batch`](crate::Batch).
    #[must_use]
    pub fn sequences(self, sequences: u32) -> Self {
        Self { sequences, ..self }
    }

    /// Sets how many tokens at the start stay when a full context is shifted. With `None` a full
    /// context is an error.
    #[must_use]
    pub fn shift(self, keep: impl Into<Option<u32>>) -> Self {
        Self { shift: keep.into(), ..self }
    }

    /// Sets the bytes that weights, KV cache and intermediates may take. `None` asks the device.
    #[must_use]
    pub fn memory_bytes(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { memory_bytes: bytes.into(), ..self }
    }

    /// Sets whether a GPU rounds activations if that is faster. The CPU never rounds them.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { plan: self.plan.precision(precision), ..self }
    }

    /// Sets the precision and the taps of the plans.
    #[must_use]
    pub fn plan(self, plan: PlanOptions) -> Self {
        Self { plan, ..self }
    }

    /// Sets the rows of the smallest plan between one row and a chunk; larger plans double from
    /// there. For tests: software drivers have no plans between.
    #[doc(hidden)]
    #[must_use]
    pub fn least_rows(self, rows: u32) -> Self {
        Self { least_rows: Some(rows), ..self }
    }

    /// The options of the plans, with the number of sequences.
    pub(crate) fn planning(&self) -> PlanOptions {
        self.plan.clone().sequences(self.sequences)
    }

    /// The largest number of rows of a step.
    pub(crate) fn most_rows(&self) -> u32 {
        self.sequences.max(self.chunk)
    }

    /// The context length that these options give with a model.
    ///
    /// # Errors
    /// [`Error::Context`] for a length of 0 or more than the model supports.
    pub fn context_for(&self, summary: &Summary) -> Result<u32, Error> {
        let limit = summary.context_length;
        match self.context {
            None => Ok(DEFAULT_CONTEXT.min(limit)),
            Some(asked) if asked == 0 || asked > limit => {
                Err(Error::Context { asked: asked as usize, limit: limit as usize, of: "the model" })
            }
            Some(asked) => Ok(asked),
        }
    }
}

/// The options of a generation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GenerateOptions {
    pub sampling: Sampling,
    /// Largest number of tokens. With `None` only the end token, a stop string or the end of the
    /// context ends the answer.
    pub max_tokens: Option<usize>,
    /// Stops: texts that end the answer and are not shown. A stop that is exactly the name of a
    /// control token also ends the answer at this token. A name inside a longer stop is text.
    pub stops: Vec<String>,
    /// Continue after end tokens, for benchmarks.
    pub ignore_end: bool,
    /// Show control tokens as text instead of leaving them out.
    pub show_control: bool,
    /// Control tokens to show even if `show_control` is false, for example the ones that a
    /// [`Parser`](crate::chat::Parser) needs.
    pub shown: Vec<u32>,
}

impl GenerateOptions {
    /// Sets how tokens are drawn.
    #[must_use]
    pub fn sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Sets the largest number of tokens. `None` sets no limit.
    #[must_use]
    pub fn max_tokens(self, tokens: impl Into<Option<usize>>) -> Self {
        Self { max_tokens: tokens.into(), ..self }
    }

    /// Sets the texts that end the answer and are not shown.
    #[must_use]
    pub fn stops(self, stops: Vec<String>) -> Self {
        Self { stops, ..self }
    }

    /// Sets whether to continue after end tokens.
    #[must_use]
    pub fn ignore_end(self, ignore: bool) -> Self {
        Self { ignore_end: ignore, ..self }
    }

    /// Sets whether control tokens are shown as text.
    #[must_use]
    pub fn show_control(self, show: bool) -> Self {
        Self { show_control: show, ..self }
    }

    /// Sets the control tokens that are always shown.
    #[must_use]
    pub fn shown(self, ids: Vec<u32>) -> Self {
        Self { shown: ids, ..self }
    }
}
