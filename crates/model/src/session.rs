//! A session: one conversation's tokens, its KV cache, and generation from them.

use crate::adapter::Applied;
use crate::arch::Summary;
use crate::chat::{Message, RenderOptions};
use crate::error::Error;
use crate::generate::{Generate, GenerateOptions};
use crate::model::Model;
use crate::runner::{Head, Runner, Span};
use crate::sampling::Sampling;
use crate::sequence::Sequence;
use crate::tokenizer::Special;
use cpu_ref::KvType;
use kernels::{Executor, Pending, PlanOptions, Precision, SampleParams};
use std::slice::from_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a session is made with: by default the fastest on its executor, over 8192 positions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Positions at most; none asks for [`DEFAULT_CONTEXT`] or what the model has, if less.
    pub context: Option<u32>,
    /// Type of the KV cache.
    pub kv: KvType,
    /// Rows of a prefill step at most; 0 leaves it to the executor, as [`Checked::settled`](crate::Checked::settled) tells.
    pub chunk: u32,
    /// Sequences of a [`Batch`](crate::Batch), which share its steps; a session is one.
    pub sequences: u32,
    /// Where the context is full, forget the oldest half of what follows the first so many tokens (half the context at most), and
    /// read the rest again; none makes a full context an error. A [`Batch`](crate::Batch) does not shift.
    pub shift: Option<u32>,
    /// Bytes that weights, cache and intermediates may take together; none asks the device.
    pub memory_bytes: Option<u64>,
    /// Precision and taps of the plans.
    pub plan: PlanOptions,
}

/// Context where none is asked for.
pub const DEFAULT_CONTEXT: u32 = 8192;

impl Default for SessionOptions {
    fn default() -> Self {
        Self { context: None, kv: KvType::F16, chunk: 0, sequences: 1, shift: None, memory_bytes: None, plan: PlanOptions::default() }
    }
}

impl SessionOptions {
    /// Positions at most, or none for [`DEFAULT_CONTEXT`].
    #[must_use]
    pub fn context(self, positions: impl Into<Option<u32>>) -> Self {
        Self { context: positions.into(), ..self }
    }

    /// Type of the KV cache.
    #[must_use]
    pub fn kv(self, kv: KvType) -> Self {
        Self { kv, ..self }
    }

    /// Rows of a prefill step at most; 0 leaves the choice to the executor.
    #[must_use]
    pub fn chunk(self, rows: u32) -> Self {
        Self { chunk: rows, ..self }
    }

    /// Sequences of a [`Batch`](crate::Batch).
    #[must_use]
    pub fn sequences(self, sequences: u32) -> Self {
        Self { sequences, ..self }
    }

    /// Tokens at the start that stay when a full context forgets; none makes a full context an error.
    #[must_use]
    pub fn shift(self, keep: impl Into<Option<u32>>) -> Self {
        Self { shift: keep.into(), ..self }
    }

    /// Bytes that weights, cache and intermediates may take together; none asks the device.
    #[must_use]
    pub fn memory_bytes(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { memory_bytes: bytes.into(), ..self }
    }

    /// Whether a GPU rounds activations where that is faster; the CPU never does.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { plan: self.plan.precision(precision), ..self }
    }

    /// Precision and taps of the plans.
    #[must_use]
    pub fn plan(self, plan: PlanOptions) -> Self {
        Self { plan, ..self }
    }

    /// The options of the plans.
    pub(crate) fn planning(&self) -> PlanOptions {
        self.plan.clone().sequences(self.sequences)
    }

    /// The positions that these options mean for a model.
    ///
    /// # Errors
    /// More than the model was made for, or none.
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

/// A value that a tap named: [rows, width], f32.
#[derive(Clone, Debug)]
pub struct Tapped {
    pub name: String,
    pub layer: u32,
    pub values: Vec<f32>,
}

/// What goes with a session's tokens wherever they go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    /// How the last answer was sampled.
    pub sampling: Option<Sampling>,
    /// Tokens that shifts left out.
    pub dropped: usize,
    /// The caller's.
    pub note: Vec<u8>,
}

/// One conversation. Tokens are fed or generated; the KV cache follows.
pub struct Session {
    pub(crate) runner: Runner,
    pub(crate) sequence: Sequence,
    pub(crate) memo: Memo,
    pub(crate) cancel: Arc<AtomicBool>,
}

/// Reports (tokens done, tokens in all) while a prompt is read.
pub type PrefillProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Session {
    pub(crate) fn new(model: Model, options: SessionOptions) -> Result<Self, Error> {
        let runner = Runner::new(model, &options)?;
        let sequence = runner.sequence();
        Ok(Self { runner, sequence, memo: Memo::default(), cancel: Arc::default() })
    }

    #[must_use]
    pub fn model(&self) -> &Model {
        &self.runner.model
    }

    /// Tokens fed and generated so far.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.sequence.tokens
    }

    /// How many of them are evaluated: their keys and values are in the cache.
    #[must_use]
    pub fn evaluated(&self) -> usize {
        self.sequence.evaluated
    }

    /// How the last answer was sampled, here or before the session was saved.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.memo.sampling.as_ref()
    }

    /// Positions at most.
    #[must_use]
    pub fn context(&self) -> usize {
        self.runner.context()
    }

    /// Whether activations are rounded here: on the CPU they never are.
    #[must_use]
    pub fn precision(&self) -> Precision {
        match self.model().executor() {
            Executor::Cpu => Precision::F32,
            Executor::Gpu(_) => self.runner.options().plan.precision,
        }
    }

    /// Bytes of KV cache allocated now.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.runner.states.bytes()
    }

    /// Set this from any thread to stop what runs; it is cleared when something starts.
    #[must_use]
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// The adapters in force, in the order in which they were given.
    #[must_use]
    pub fn adapters(&self) -> &[Applied] {
        self.runner.adapters()
    }

    /// Puts these adapters in force, of any number, in place of those that were.
    ///
    /// The tokens stay, but keys and values that other weights made are not kept: unless nothing changes, the whole conversation is
    /// evaluated again before the next token.
    ///
    /// # Errors
    /// [`Error::Adapter`] for one of another model or a scale that is not finite, [`Error::TooLarge`]; nothing changes then.
    pub fn set_adapters(&mut self, adapters: Vec<Applied>) -> Result<(), Error> {
        if self.runner.set_adapters(adapters)? {
            self.sequence.stale();
        }
        Ok(())
    }

    /// Forgets everything after the first `tokens` tokens.
    pub fn rollback(&mut self, tokens: usize) {
        self.sequence.rollback(tokens);
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.rollback(0);
        self.memo.dropped = 0;
    }

    /// Generates from what was fed; the iterator ends at an end token, a stop string, a limit or a full context.
    ///
    /// # Errors
    /// [`Error::NothingFed`]; [`Error::ContextOverflow`] when there is no room for a token and the context does not shift.
    pub fn generate_with(&mut self, options: GenerateOptions) -> Result<Generate<'_>, Error> {
        if self.tokens().is_empty() {
            return Err(Error::NothingFed);
        }
        if !self.shift()? {
            return Err(Error::ContextOverflow { needed: self.context() + 1, limit: self.context() });
        }
        self.cancel.store(false, Ordering::Relaxed);
        self.memo.sampling = Some(options.sampling.clone());
        Ok(Generate::new(self, options))
    }

    /// Answers a conversation: renders these turns by the model's chat template and generates the next.
    ///
    /// What the session has evaluated of the same beginning is kept, so a chat gives its whole
    /// conversation again with each turn. Text of the turns never becomes a control token.
    ///
    /// # Errors
    /// [`Error::Chat`] for turns that the template refuses, and as [`Session::set_prompt`] and
    /// [`Session::generate_with`].
    pub fn chat(&mut self, turns: &[Message]) -> Result<Generate<'_>, Error> {
        self.chat_with(turns, &RenderOptions::default(), GenerateOptions::default())
    }

    /// As [`Session::chat`], with tools, thinking and sampling of the caller's choice.
    ///
    /// # Errors
    /// As [`Session::chat`].
    pub fn chat_with(&mut self, turns: &[Message], render: &RenderOptions, generate: GenerateOptions) -> Result<Generate<'_>, Error> {
        let prompt = self.model().template().encode(self.model().tokenizer(), turns, render)?;
        self.set_prompt(&prompt)?;
        self.generate_with(generate)
    }

    /// Appends a text as it is, without the chat template, and generates from it.
    ///
    /// `special` says whether a control token that the text spells becomes that token.
    /// [`Special::Text`] is for text of others.
    ///
    /// # Errors
    /// As [`Session::feed`] and [`Session::generate_with`].
    pub fn generate_raw(&mut self, text: &str, special: Special, options: GenerateOptions) -> Result<Generate<'_>, Error> {
        let tokenizer = self.model().tokenizer();
        let ids = if self.tokens().is_empty() { tokenizer.encode_prompt(text, special) } else { tokenizer.encode(text, special) };
        self.feed(&ids)?;
        self.generate_with(options)
    }

    /// Evaluates what was fed and not yet evaluated, without asking for logits of it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] between chunks, what the executor gives; what was evaluated before stays so.
    pub fn prefill(&mut self, progress: Option<PrefillProgress<'_>>) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        self.prefill_to(self.sequence.tokens.len(), 0, Head::Sample { penalize: false }, progress)
    }

    /// Evaluates in whole chunks up to position `end`, until `keep` positions or fewer are left.
    pub(crate) fn prefill_to(&mut self, end: usize, keep: usize, head: Head, progress: Option<PrefillProgress<'_>>) -> Result<(), Error> {
        self.runner.prefill(from_mut(&mut self.sequence), &[end], keep, head, &self.cancel, progress)
    }

    /// Starts the evaluation of the positions up to `until` (at most a chunk); `draws` asks for an id after the last.
    pub(crate) fn start(&mut self, until: usize, head: Head, draws: &[SampleParams]) -> Result<Pending, Error> {
        self.runner.start(from_mut(&mut self.sequence), &[Span { slot: 0, until }], head, draws, &self.cancel)
    }

    /// The logits [T, V] of every token that was fed and not yet evaluated, in chunks: `each` gets the first position
    /// of a chunk, its rows, and the values of the taps that [`SessionOptions::plan`] names.
    ///
    /// # Errors
    /// What the executor gives; [`Error::NonFinite`] when a logit is not a number, after `each` has seen it and the taps that
    /// tell where it began.
    pub fn logits(&mut self, mut each: impl FnMut(usize, &[f32], &[Tapped])) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        let chunk = self.runner.rows_with_logits() as usize;
        let vocabulary = self.runner.model.summary().vocabulary as usize;
        while self.sequence.evaluated < self.tokens().len() {
            let from = self.sequence.evaluated;
            let until = self.tokens().len().min(from + chunk);
            let outputs = self.start(until, Head::Logits, &[])?.wait()?;
            let names = self.runner.taps(self.runner.key(until - from, Head::Logits));
            let value = |(n, (name, layer))| Tapped { name, layer, values: outputs.f32(1 + n).to_vec() };
            let tapped: Vec<Tapped> = names.into_iter().enumerate().map(value).collect();
            let logits = outputs.f32(0);
            let bad = logits.iter().position(|v| !v.is_finite());
            each(from, logits, &tapped);
            if let Some(bad) = bad {
                return Err(Error::NonFinite { sequence: 0, position: from + bad / vocabulary });
            }
        }
        Ok(())
    }

    /// Times every dispatch of the step that evaluates what was fed and not yet evaluated (at most a chunk) and draws a
    /// token greedily; the session stays as it was, so that a second call finds everything warm.
    ///
    /// # Errors
    /// [`Error::NothingFed`]; devices without timestamps, and the CPU, say so; what the executor gives.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn profile(&mut self) -> Result<kernels::exec::profile::Profile, Error> {
        let from = self.sequence.evaluated;
        let until = self.tokens().len().min(from + self.runner.options().chunk as usize);
        if until == from {
            return Err(Error::NothingFed);
        }
        let draws = [Sampling::greedy().params(0)];
        self.runner.profile(from_mut(&mut self.sequence), &[Span { slot: 0, until }], &draws)
    }
}
