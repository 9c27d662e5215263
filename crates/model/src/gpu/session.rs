//! A session: the tokens of one conversation and its KV cache.

use crate::adapter::Applied;
use crate::error::Error;
use crate::model::Model;
pub use crate::options::{DEFAULT_CONTEXT, SessionOptions};
use crate::recording::Head;
use crate::runner::{Prefill, Runner, Span};
use crate::sampling::Sampling;
use crate::sequence::Sequence;
use gguf::Report;
use kernels::{Agreement, Element, Executor, Mirror, Pending, Plan, Precision, SampleParams, States, Tap, Watch};
use std::slice::from_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

impl Model {
    /// Starts a conversation. Sessions share the weights and are otherwise independent.
    ///
    /// # Errors
    /// [`Error::Context`] for a context length that the model does not support, [`Error::Tap`] for
    /// a tap that it does not have, [`Error::TooLarge`] for a session that does not fit into
    /// memory.
    ///
    /// # Panics
    /// If [`SessionOptions::sequences`] is 0.
    pub async fn session_async(&self, options: SessionOptions) -> Result<Session, Error> {
        let runner = Runner::new(self.clone(), &options).await?;
        let sequence = runner.sequence();
        Ok(Session { runner, sequence, memo: Memo::default(), cancel: Arc::default() })
    }
}

impl Session {
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

    /// Continues with other options, such as another context length. The tokens, the adapters,
    /// sampling and note stay, and the whole conversation is evaluated again before the next token.
    /// Until this returns, the old cache and the first positions of the new cache are both held.
    ///
    /// # Errors
    /// [`Error::ContextOverflow`] if the tokens do not fit into the new context; the errors of
    /// [`Model::session_async`] and [`Session::set_adapters`]. Nothing changes after an error.
    ///
    /// # Panics
    /// If [`SessionOptions::sequences`] is 0.
    pub async fn reopen_async(&mut self, options: SessionOptions) -> Result<(), Error> {
        let mut runner = Runner::new(self.model().clone(), &options).await?;
        runner.set_adapters(self.adapters().to_vec())?;
        let (needed, limit) = (self.tokens().len(), runner.context());
        if needed > limit {
            return Err(Error::ContextOverflow { needed, limit });
        }
        let tokens = std::mem::take(&mut self.sequence.tokens);
        self.sequence = Sequence { tokens, ..runner.sequence() };
        self.runner = runner;
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

    /// Evaluates the tokens that are not evaluated yet, without reading their logits. `progress`
    /// gets their number.
    ///
    /// # Errors
    /// [`Error::Cancelled`] between chunks; errors of the executor. Chunks that were evaluated
    /// before stay evaluated.
    pub async fn prefill_async(&mut self, progress: Option<Report<'_>>) -> Result<(), Error> {
        self.cancel.store(false, Ordering::Relaxed);
        self.prefill_to(self.sequence.tokens.len(), 0, Head::Sample { penalize: false }, progress).await?.finish().await
    }

    /// Evaluates up to position `end`, as [`Runner::prefill`] does.
    pub(crate) async fn prefill_to<'p>(
        &mut self,
        end: usize,
        behind: usize,
        head: Head,
        progress: Option<Report<'p>>,
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
    /// CPU. `progress` gets the operations of each chunk. A session on the CPU has
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
        progress: Option<Report<'_>>,
    ) -> Result<Vec<Agreement>, Error> {
        assert!(self.adapters().is_empty(), "the mirror has no adapters");
        let (chunk, end) = (self.runner.options().chunk as usize, self.tokens().len());
        if self.sequence.evaluated == end {
            return Err(Error::NothingFed);
        }
        self.cancel.store(false, Ordering::Relaxed);
        let report = progress.map(|each| move |_, progress| each(progress));
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
