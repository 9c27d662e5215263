//! A session: the tokens of one conversation, its KV cache, and generation from them.

use crate::adapter::Applied;
use crate::arch::Summary;
use crate::chat::{Message, RenderOptions};
use crate::error::Error;
use crate::generate::{Generate, GenerateOptions};
use crate::model::Model;
use crate::plans::Head;
use crate::runner::{Prefill, Runner, Span};
use crate::sampling::Sampling;
use crate::sequence::Sequence;
use crate::tokenizer::Special;
use cpu_ref::KvType;
use kernels::{
    Agreement, Element, Executor, Mirror, Pending, Plan, PlanOptions, Precision, SampleParams, States, Tap, Watch,
};
use std::slice::from_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The values of a tap: [rows, width]. Whole numbers, such as the experts that rows chose, are
/// converted to f32.
#[derive(Clone, Debug)]
pub struct Tapped {
    pub name: String,
    pub layer: u32,
    pub values: Vec<f32>,
}

/// Data that is saved, loaded and forked with the tokens of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    /// How the last answer was sampled.
    pub sampling: Option<Sampling>,
    /// Number of tokens that shifts have dropped.
    pub dropped: usize,
    /// A note of the caller.
    pub note: Vec<u8>,
}

/// One conversation. Tokens are fed or generated, and are evaluated into the KV cache when needed.
pub struct Session {
    pub(crate) runner: Runner,
    pub(crate) sequence: Sequence,
    pub(crate) memo: Memo,
    pub(crate) cancel: Arc<AtomicBool>,
}

/// Gets (tokens evaluated, tokens in total) while a prompt is evaluated.
pub type PrefillProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Gets (operations done, operations) of a chunk that is compared.
pub type Operations<'a> = &'a (dyn Fn(u32, u32) + Sync);

impl Session {
    pub(crate) async fn new(model: Model, options: SessionOptions) -> Result<Self, Error> {
        let runner = Runner::new(model, &options).await?;
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

    /// Number of these tokens whose keys and values are in the cache.
    #[must_use]
    pub fn evaluated(&self) -> usize {
        self.sequence.evaluated
    }

    /// How the last answer was sampled, here or before the session was saved.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.memo.sampling.as_ref()
    }

    /// Context length in tokens.
    #[must_use]
    pub fn context(&self) -> usize {
        self.runner.context()
    }

    /// Whether this session rounds activations. On the CPU it never does.
    #[must_use]
    pub fn precision(&self) -> Precision {
        match self.model().executor() {
            Executor::Cpu => Precision::F32,
            Executor::Gpu(_) => self.runner.options().plan.precision,
        }
    }

    /// Bytes of the KV cache that are allocated now.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.runner.states.bytes()
    }

    /// The token ids, keys and values of this session, on its executor.
    #[must_use]
    pub fn states(&self) -> &States {
        &self.runner.states
    }

    /// The plan of the last step. Its outputs and taps have the values of that step. With the
    /// feature `interop` of `kernels`, a program reads their buffers in its own passes.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.runner.last_plan()
    }

    /// A flag that stops the running call when any thread sets it. It is cleared when a call
    /// starts.
    #[must_use]
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// The adapters in force, in the order in which they were given.
    #[must_use]
    pub fn adapters(&self) -> &[Applied] {
        self.runner.adapters()
    }

    /// Replaces the adapters in force with these, of any number.
    ///
    /// The tokens stay. If the adapters change, the whole conversation is evaluated again before
    /// the next token, because keys and values depend on the adapters.
    ///
    /// # Errors
    /// [`Error::Adapter`] for an adapter of another model or a scale that is not finite;
    /// [`Error::TooLarge`]. Nothing changes after an error.
    pub fn set_adapters(&mut self, adapters: Vec<Applied>) -> Result<(), Error> {
        if self.runner.set_adapters(adapters)? {
            self.sequence.stale();
        }
        Ok(())
    }

    /// Continues with another handle of the same model: on another executor, or on a device that
    /// was opened again after it was lost. Then `adapters`, loaded beside the new weights, are in
    /// force.
    ///
    /// Tokens, sampling and note stay. The whole conversation is evaluated again before the next
    /// token. Until then the old weights and the new weights are both held, unless the old device
    /// was lost.
    ///
    /// # Errors
    /// [`Error::OtherModel`] for weights of another file; the errors of [`Model::session_async`]
    /// and [`Session::set_adapters`]. Nothing changes after an error.
    pub async fn move_to_async(&mut self, model: &Model, adapters: Vec<Applied>) -> Result<(), Error> {
        self.runner = self.runner.moved(model, adapters).await?;
        self.sequence.stale();
        Ok(())
    }

    /// Forgets all tokens after the first `tokens`.
    pub fn rollback(&mut self, tokens: usize) {
        self.sequence.rollback(tokens);
    }

    /// Forgets all tokens.
    pub fn reset(&mut self) {
        self.rollback(0);
        self.memo.dropped = 0;
    }

    /// Generates tokens after the fed tokens. The iterator ends at an end token, a stop string, the
    /// limit of tokens or a full context.
    ///
    /// # Errors
    /// [`Error::NothingFed`]; [`Error::ContextOverflow`] if there is no room for a token and the
    /// context does not shift.
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

    /// Answers a conversation: renders these turns with the model's chat template and generates the
    /// next turn.
    ///
    /// Give the whole conversation with each call. Tokens at the start that are evaluated already
    /// are not evaluated again. Text in the turns never becomes a control token.
    ///
    /// # Errors
    /// [`Error::Chat`] for turns that the template refuses; the errors of [`Session::set_prompt`]
    /// and [`Session::generate_with`].
    pub fn chat(&mut self, turns: &[Message]) -> Result<Generate<'_>, Error> {
        self.chat_with(turns, &RenderOptions::default(), GenerateOptions::default())
    }

    /// As [`Session::chat`], with the caller's options for tools, thinking and sampling.
    ///
    /// # Errors
    /// As [`Session::chat`].
    pub fn chat_with(
        &mut self,
        turns: &[Message],
        render: &RenderOptions,
        generate: GenerateOptions,
    ) -> Result<Generate<'_>, Error> {
        let prompt = self.model().template().encode(self.model().tokenizer(), turns, render)?;
        self.set_prompt(&prompt)?;
        self.generate_with(generate)
    }

    /// Appends a text without the chat template and generates from it.
    ///
    /// `special` says whether the spelling of a control token in the text becomes that token. Use
    /// [`Special::Text`] for text that you do not trust.
    ///
    /// # Errors
    /// As [`Session::feed`] and [`Session::generate_with`].
    pub fn generate_raw(
        &mut self,
        text: &str,
        special: Special,
        options: GenerateOptions,
    ) -> Result<Generate<'_>, Error> {
        let tokenizer = self.model().tokenizer();
        let ids = if self.tokens().is_empty() {
            tokenizer.encode_prompt(text, special)
        } else {
            tokenizer.encode(text, special)
        }?;
        self.feed(&ids)?;
        self.generate_with(options)
    }

    /// Evaluates the tokens that are not evaluated yet, without reading their logits.
    ///
    /// # Errors
    /// [`Error::Cancelled`] between chunks; errors of the executor. Chunks that were evaluated
    /// before stay evaluated.
    pub async fn prefill_async(&mut self, progress: Option<PrefillProgress<'_>>) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        self.prefill_to(self.sequence.tokens.len(), 0, Head::Sample { penalize: false }, progress).await?.finish().await
    }

    /// Evaluates up to position `end`, as [`Runner::prefill`] does.
    pub(crate) async fn prefill_to<'p>(
        &mut self,
        end: usize,
        behind: usize,
        head: Head,
        progress: Option<PrefillProgress<'p>>,
    ) -> Result<Prefill<'p>, Error> {
        self.runner.prefill(from_mut(&mut self.sequence), &[end], behind, head, &self.cancel, progress).await
    }

    /// Starts to evaluate the positions up to `until` (at most a chunk). If `draws` is not empty,
    /// an id is drawn after the last position.
    pub(crate) async fn start(&mut self, until: usize, head: Head, draws: &[SampleParams]) -> Result<Pending, Error> {
        self.runner.start(from_mut(&mut self.sequence), &[Span { slot: 0, until }], head, draws, &self.cancel).await
    }

    /// Evaluates the tokens that are not evaluated yet and reads the logits [T, V] of each, in
    /// chunks. `each` gets the first position of a chunk, its rows of logits, and the values of the
    /// taps that [`SessionOptions::plan`] names.
    ///
    /// # Errors
    /// Errors of the executor; [`Error::NonFinite`] if a logit is not finite. `each` gets that
    /// chunk before the error, because its taps show where the value comes from.
    pub async fn logits_async(&mut self, mut each: impl FnMut(usize, &[f32], &[Tapped])) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        let chunk = self.runner.rows_with_logits() as usize;
        let vocabulary = self.runner.model.summary().vocabulary as usize;
        while self.sequence.evaluated < self.tokens().len() {
            let from = self.sequence.evaluated;
            let until = self.tokens().len().min(from + chunk);
            let outputs = self.start(until, Head::Logits, &[]).await?.wait_async().await?;
            let taps = self.runner.taps(self.runner.key(until - from, Head::Logits));
            let value = |(n, tap): (usize, &Tap)| {
                let values = match tap.tensor.element {
                    Element::U32 => outputs.0[1 + n].iter().map(|&number| number as f32).collect(),
                    Element::F32 | Element::F16 | Element::Q8 => outputs.f32(1 + n).to_vec(),
                };
                Tapped { name: tap.name.to_string(), layer: tap.layer, values }
            };
            let tapped: Vec<Tapped> = taps.iter().enumerate().map(value).collect();
            let logits = outputs.f32(0);
            let bad = logits.iter().position(|v| !v.is_finite());
            each(from, logits, &tapped);
            if let Some(bad) = bad {
                return Err(self.runner.not_finite(from_mut(&mut self.sequence), 0, from + bad / vocabulary).await);
            }
        }
        Ok(())
    }

    /// Times every dispatch of one step. The step evaluates the tokens that are not evaluated yet
    /// (at most a chunk) and draws a token greedily. The session does not change, so a second call
    /// measures the same step with built kernels.
    ///
    /// # Errors
    /// [`Error::NothingFed`]; an error on the CPU and on devices without timestamps; errors of the
    /// executor.
    pub async fn profile_async(&mut self) -> Result<kernels::Profile, Error> {
        let from = self.sequence.evaluated;
        let until = self.tokens().len().min(from + self.runner.options().chunk as usize);
        if until == from {
            return Err(Error::NothingFed);
        }
        let draws = [Sampling::greedy().params(0)];
        self.runner.profile(from_mut(&mut self.sequence), &[Span { slot: 0, until }], &draws).await
    }

    /// Evaluates the tokens that are not evaluated yet in chunks, one operation at a time, on the
    /// device and on the host, and returns how each operation of each chunk agrees. The last chunk
    /// draws a token greedily, which is dropped. `mirror` has the weights of the same file on the
    /// CPU. `progress` gets (operations done, operations) of each chunk. A session on the CPU has
    /// nothing to compare.
    ///
    /// # Errors
    /// [`Error::NothingFed`]; [`Error::Cancelled`]; errors of the executor.
    ///
    /// # Panics
    /// If the weights of `mirror` are of another model, or an adapter is in force.
    pub async fn agree_async(
        &mut self,
        mirror: &mut Mirror,
        progress: Option<Operations<'_>>,
    ) -> Result<Vec<Agreement>, Error> {
        assert!(self.adapters().is_empty(), "the mirror has no adapters");
        let (chunk, end) = (self.runner.options().chunk as usize, self.tokens().len());
        if self.sequence.evaluated == end {
            return Err(Error::NothingFed);
        }
        self.cancel.store(false, Ordering::Relaxed);
        let report = |progress: kernels::Progress, each: Operations<'_>| each(progress.done, progress.total);
        let report = progress.map(|each| move |progress| report(progress, each));
        let watch = Watch { cancel: Some(&*self.cancel), progress: report.as_ref().map(|each| each as _) };
        let mut agreements = vec![];
        while self.sequence.evaluated < end {
            let until = end.min(self.sequence.evaluated + chunk);
            let draws = [Sampling::greedy().params(0)];
            let draws = if until == end { &draws[..] } else { &[] };
            let spans = [Span { slot: 0, until }];
            agreements.extend(self.runner.agree(mirror, from_mut(&mut self.sequence), &spans, draws, watch).await?);
        }
        Ok(agreements)
    }
}
