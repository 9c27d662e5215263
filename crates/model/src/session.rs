//! A session: one conversation's tokens, its KV cache, and generation from them.

use crate::arch::{Logits, Summary};
use crate::error::Error;
use crate::generate::{Generate, GenerateOptions};
use crate::model::Model;
use crate::runner::{Head, PlanKey, Runner};
use crate::sampling::Sampling;
use cpu_ref::KvType;
use kernels::{Pending, PlanOptions, StepInput, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a session is made with.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Positions at most; none asks for [`DEFAULT_CONTEXT`] or what the model has, if less.
    pub context: Option<u32>,
    /// Type of the KV cache.
    pub kv: KvType,
    /// Rows of a prefill step at most.
    pub chunk: u32,
    /// Sequences that share the session's steps.
    pub sequences: u32,
    /// Taps, fusion and rows of the plans.
    pub plan: PlanOptions,
}

/// Context where none is asked for.
pub const DEFAULT_CONTEXT: u32 = 8192;

impl Default for SessionOptions {
    fn default() -> Self {
        Self { context: None, kv: KvType::F16, chunk: 512, sequences: 1, plan: PlanOptions::default() }
    }
}

impl SessionOptions {
    /// The same with this many positions.
    #[must_use]
    pub fn context(self, positions: u32) -> Self {
        Self { context: Some(positions), ..self }
    }

    /// The same with this type of KV cache.
    #[must_use]
    pub fn kv(self, kv: KvType) -> Self {
        Self { kv, ..self }
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

/// One conversation. Tokens are fed or generated; the KV cache follows.
pub struct Session {
    pub(crate) runner: Runner,
    /// What was fed and generated, in order.
    pub(crate) tokens: Vec<u32>,
    /// Positions whose keys and values are in the cache; while a generation runs ahead, more than `tokens`.
    pub(crate) evaluated: usize,
    pub(crate) cancel: Arc<AtomicBool>,
}

/// Reports (tokens done, tokens in all) while a prompt is read.
pub type PrefillProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Session {
    pub(crate) fn new(model: Arc<Model>, options: SessionOptions) -> Result<Self, Error> {
        let runner = Runner::new(model, &options)?;
        Ok(Self { runner, tokens: vec![], evaluated: 0, cancel: Arc::default() })
    }

    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.runner.model
    }

    /// Tokens fed and generated so far.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Positions at most.
    #[must_use]
    pub fn context(&self) -> usize {
        self.runner.context()
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

    /// Appends tokens; they are evaluated when logits or text are asked for.
    ///
    /// # Errors
    /// [`Error::TokenId`], [`Error::ContextOverflow`]; nothing is appended then.
    pub fn feed(&mut self, ids: &[u32]) -> Result<(), Error> {
        let vocabulary = self.runner.model.summary().vocabulary;
        if let Some(&id) = ids.iter().find(|&&id| id >= vocabulary) {
            return Err(Error::TokenId { id, vocabulary });
        }
        let needed = self.tokens.len() + ids.len();
        if needed > self.context() {
            return Err(Error::ContextOverflow { needed, limit: self.context() });
        }
        self.tokens.extend_from_slice(ids);
        Ok(())
    }

    /// Makes the session hold exactly these tokens, keeping what it has evaluated of their longest common prefix.
    ///
    /// # Errors
    /// As [`Session::feed`].
    pub fn set_prompt(&mut self, ids: &[u32]) -> Result<(), Error> {
        let common = self.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let kept = self.tokens.clone();
        self.rollback(common);
        self.feed(&ids[common..]).inspect_err(|_| self.tokens = kept)
    }

    /// Forgets everything after the first `tokens` tokens.
    pub fn rollback(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.evaluated = self.evaluated.min(self.tokens.len());
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.rollback(0);
    }

    /// Generates from what was fed; the iterator ends at an end token, a stop string, a limit or a full context.
    ///
    /// # Errors
    /// [`Error::ContextOverflow`] when there is no room for a token, or nothing was fed.
    pub fn generate_with(&mut self, options: GenerateOptions) -> Result<Generate<'_>, Error> {
        if self.tokens.is_empty() {
            return Err(Error::NothingFed);
        }
        self.cancel.store(false, Ordering::Relaxed);
        Ok(Generate::new(self, options))
    }

    /// Feeds a text and generates from it.
    ///
    /// # Errors
    /// As [`Session::feed`] and [`Session::generate_with`].
    pub fn generate(&mut self, text: &str, sampling: Sampling) -> Result<Generate<'_>, Error> {
        let tokenizer = Arc::clone(self.model().tokenizer());
        let special = crate::tokenizer::Special::Parse;
        let ids = if self.tokens.is_empty() { tokenizer.encode_prompt(text, special) } else { tokenizer.encode(text, special) };
        self.feed(&ids)?;
        self.generate_with(GenerateOptions { sampling, ..GenerateOptions::default() })
    }

    /// Evaluates what was fed and not yet evaluated, without asking for logits of it.
    ///
    /// # Errors
    /// [`Error::Cancelled`] between chunks, what the executor gives.
    pub fn prefill(&mut self, progress: Option<PrefillProgress<'_>>) -> Result<(), Error> {
        let head = Head::Sample { penalize: false };
        self.prefill_to(self.tokens.len(), head, progress)
    }

    /// Evaluates in whole chunks until position `end`.
    pub(crate) fn prefill_to(&mut self, end: usize, head: Head, progress: Option<PrefillProgress<'_>>) -> Result<(), Error> {
        let (first, chunk) = (self.evaluated, self.runner.options().chunk as usize);
        while self.evaluated < end {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let until = end.min(self.evaluated + chunk);
            self.start(until, head, vec![], vec![])?.wait()?;
            if let Some(report) = progress {
                report(self.evaluated - first, end - first);
            }
        }
        Ok(())
    }

    /// Starts the evaluation of the positions up to `until` (at most a chunk), asking for some rows of it.
    pub(crate) fn start(
        &mut self,
        until: usize,
        head: Head,
        out_rows: Vec<u32>,
        sampling: Vec<kernels::SampleParams>,
    ) -> Result<Pending, Error> {
        let from = self.evaluated;
        self.runner.reserve((until + 1).min(self.context()))?;
        // Ids past the known ones were sampled by a step still in flight and are on the device already.
        let known = from.min(self.tokens.len())..until.min(self.tokens.len());
        if !known.is_empty() {
            self.runner.write_tokens(0, known.start, &self.tokens[known]);
        }
        let positions: Vec<u32> = (from as u32..until as u32).collect();
        let rows = if positions.len() == 1 { 1 } else { self.runner.options().chunk };
        let out = if head == Head::Logits(Logits::All) { rows } else { 1 };
        let key = PlanKey { rows, out, head };
        let input = StepInput { sequences: vec![0; positions.len()], positions, out_rows, sampling, ..StepInput::default() };
        let cancel = Arc::clone(&self.cancel);
        let pending = self.runner.run(key, &input, Watch { cancel: Some(&cancel), progress: None })?;
        self.evaluated = until;
        Ok(pending)
    }

    /// The logits [T, V] of every token that was fed and not yet evaluated, in chunks: `each` gets the first position
    /// of a chunk and its rows.
    ///
    /// # Errors
    /// What the executor gives; [`Error::NonFinite`] when a logit is not a number.
    pub fn logits(&mut self, mut each: impl FnMut(usize, &[f32], &[Tapped])) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        let chunk = self.runner.rows_with_logits() as usize;
        let vocabulary = self.runner.model.summary().vocabulary as usize;
        let head = Head::Logits(Logits::All);
        while self.evaluated < self.tokens.len() {
            let from = self.evaluated;
            let until = self.tokens.len().min(from + chunk);
            let outputs = self.start(until, head, vec![], vec![])?.wait()?;
            let logits = outputs.f32(0);
            if let Some(bad) = logits.iter().position(|v| !v.is_finite()) {
                return Err(Error::NonFinite { position: from + bad / vocabulary });
            }
            let rows = if until - from == 1 { 1 } else { self.runner.options().chunk };
            let names = self.runner.taps(PlanKey { rows, out: rows, head });
            let tapped: Vec<Tapped> = names
                .into_iter()
                .enumerate()
                .map(|(n, (name, layer))| Tapped { name, layer, values: outputs.f32(1 + n).to_vec() })
                .collect();
            each(from, logits, &tapped);
        }
        Ok(())
    }
}
