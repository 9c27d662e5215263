//! A batch: several sequences of different lengths that share every step.

use crate::adapter::Applied;
use crate::error::Error;
use crate::model::Model;
use crate::options::SessionOptions;
use crate::recording::{Head, drawn};
use crate::runner::{Runner, Span};
use crate::sampling::Sampling;
use crate::sequence::Sequence;
use kernels::{Agreement, Mirror, Pending, SampleParams, Watch};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token that a step drew for one sequence.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The number of the sequence. The token is already appended to it.
    pub sequence: u32,
    pub id: u32,
    /// Natural logarithm of the token's probability before penalties, filters and temperature.
    pub log_prob: f32,
}

/// Several sequences of one model. Each is fed, rolled back and released by its number, at any
/// time. Every step draws the next token of each sequence that is not empty.
pub struct Batch {
    runner: Runner,
    sequences: Vec<Sequence>,
    /// Steps that are submitted and not read yet. Each draws a token for every sequence that is not
    /// empty and has room.
    flight: VecDeque<Flight>,
    /// How many steps may be in flight: one after a change, and one more after every step without a
    /// change, because a change makes steps that ran ahead useless.
    ahead: usize,
    sampling: Vec<Sampling>,
    /// Whether a step has begun and not ended. It stays set if the future of a step is dropped.
    busy: bool,
    cancel: Arc<AtomicBool>,
}

struct Flight {
    pending: Pending,
    slots: Vec<usize>,
}

impl Model {
    /// Makes a batch of [`SessionOptions::sequences`] sequences, which share every step.
    ///
    /// # Errors
    /// As [`Model::session_async`].
    ///
    /// # Panics
    /// As [`Model::session_async`].
    pub async fn batch_async(&self, options: SessionOptions) -> Result<Batch, Error> {
        let runner = Runner::new(self.clone(), &options).await?;
        let sequences = vec![runner.sequence(); options.sequences as usize];
        Ok(Batch {
            runner,
            sequences,
            flight: VecDeque::new(),
            ahead: 1,
            sampling: vec![],
            busy: false,
            cancel: Arc::default(),
        })
    }
}

impl Batch {
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.runner.model
    }

    /// Number of sequences, including empty ones.
    #[must_use]
    pub fn sequences(&self) -> u32 {
        self.sequences.len() as u32
    }

    /// Context length of each sequence, in tokens.
    #[must_use]
    pub fn context(&self) -> usize {
        self.runner.context()
    }

    /// Bytes of the KV cache that are allocated now.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.runner.states.bytes()
    }

    /// A flag that stops a step when any thread sets it. It is cleared when that step returns
    /// [`Error::Cancelled`].
    #[must_use]
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Tokens fed to and drawn for a sequence so far.
    ///
    /// # Panics
    /// If there is no sequence with this number. The functions below that take the number
    /// of a sequence panic then, too.
    #[must_use]
    pub fn tokens(&self, sequence: u32) -> &[u32] {
        &self.sequences[sequence as usize].tokens
    }

    /// The adapters in force.
    #[must_use]
    pub fn adapters(&self) -> &[Applied] {
        self.runner.adapters()
    }

    /// Replaces the adapters of all sequences, as
    /// [`Session::set_adapters`](crate::Session::set_adapters) does for a session.
    ///
    /// # Errors
    /// As [`Session::set_adapters`](crate::Session::set_adapters). Nothing changes after an error.
    pub fn set_adapters(&mut self, adapters: Vec<Applied>) -> Result<(), Error> {
        self.settle();
        if self.runner.set_adapters(adapters)? {
            self.sequences.iter_mut().for_each(Sequence::stale);
        }
        Ok(())
    }

    /// Continues with another handle of the same model, as
    /// [`Session::move_to_async`](crate::Session::move_to_async) does for a session.
    ///
    /// # Errors
    /// As [`Session::move_to_async`](crate::Session::move_to_async). An error changes nothing.
    pub async fn move_to_async(&mut self, model: &Model, adapters: Vec<Applied>) -> Result<(), Error> {
        self.settle();
        self.runner = self.runner.moved(model, adapters).await?;
        self.sequences.iter_mut().for_each(Sequence::stale);
        Ok(())
    }

    /// Appends tokens to a sequence. The next step evaluates them.
    ///
    /// # Errors
    /// [`Error::TokenId`], [`Error::ContextOverflow`]. Nothing is appended after an error.
    pub fn feed(&mut self, sequence: u32, ids: &[u32]) -> Result<(), Error> {
        self.settle();
        let vocabulary = self.runner.model.summary().vocabulary;
        self.sequences[sequence as usize].feed(ids, vocabulary, self.runner.context())
    }

    /// Forgets all tokens of a sequence after the first `tokens`.
    pub fn rollback(&mut self, sequence: u32, tokens: usize) {
        self.settle();
        self.sequences[sequence as usize].rollback(tokens);
    }

    /// Empties a sequence. It takes part in no step until it is fed again.
    pub fn release(&mut self, sequence: u32) {
        self.rollback(sequence, 0);
    }

    /// Evaluates the fed tokens, then draws one token for every sequence that is not empty and has
    /// room for one more. If nothing is drawn, all sequences are empty or full.
    ///
    /// The n-th of `sampling` is for sequence n. The last one is also for all sequences behind it.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::NonFinite`], errors of the executor. Nothing is drawn after
    /// an error, and the step can be tried again.
    ///
    /// # Panics
    /// If `sampling` is empty.
    pub async fn step_async(&mut self, sampling: &[Sampling]) -> Result<Vec<Drawn>, Error> {
        assert!(!sampling.is_empty(), "a step needs to know how to sample");
        if self.busy || sampling != self.sampling {
            self.settle();
            self.sampling = sampling.to_vec();
        }
        self.busy = true;
        let result = self.advance().await;
        self.busy = false;
        if result.is_err() {
            self.settle();
            self.cancel.store(false, Ordering::Relaxed);
        }
        result
    }

    async fn advance(&mut self) -> Result<Vec<Drawn>, Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        while self.flight.len() < self.ahead && self.submit().await? {}
        let Some(Flight { pending, slots }) = self.flight.pop_front() else { return Ok(vec![]) };
        let outputs = pending.wait_async().await?;
        let draws = slots.iter().zip(drawn(&outputs));
        let draws: Vec<Drawn> =
            draws.map(|(&slot, (id, log_prob))| Drawn { sequence: slot as u32, id, log_prob }).collect();
        if let Some(bad) = draws.iter().find(|draw| !draw.log_prob.is_finite()) {
            let (slot, position) = (bad.sequence as usize, self.tokens(bad.sequence).len() - 1);
            return Err(self.runner.not_finite(&mut self.sequences, slot, position).await);
        }
        draws.iter().for_each(|draw| self.sequences[draw.sequence as usize].tokens.push(draw.id));
        self.ahead = (self.ahead + 1).min(self.runner.depth());
        Ok(draws)
    }

    /// Starts one step. Returns false if no sequence takes part.
    async fn submit(&mut self) -> Result<bool, Error> {
        let mut spans = vec![];
        let mut ends = vec![0; self.sequences.len()];
        for (slot, sequence) in self.sequences.iter_mut().enumerate() {
            let drawn = self.flight.iter().filter(|flight| flight.slots.contains(&slot)).count();
            let until = sequence.tokens.len() + drawn;
            if !sequence.tokens.is_empty() && until < self.runner.context() {
                if drawn == 0 {
                    sequence.reread();
                }
                ends[slot] = until - 1;
                spans.push(Span { slot, until });
            }
        }
        if spans.is_empty() {
            return Ok(false);
        }
        let draws: Vec<SampleParams> = spans.iter().map(|span| self.params(span.slot)).collect();
        let head = Head::Sample { penalize: draws.iter().any(SampleParams::penalizes) };
        let mut prefill =
            self.runner.prefill(&mut self.sequences, &ends, spans.len(), head, &self.cancel, None).await?;
        let pending = self.runner.start(&mut self.sequences, &spans, head, &draws, &self.cancel).await?;
        self.flight.push_back(Flight { pending, slots: spans.iter().map(|span| span.slot).collect() });
        prefill.finish().await?;
        Ok(true)
    }

    /// Times every dispatch of one step. For every sequence that is not empty, the step evaluates
    /// the fed tokens, or the last token again if there are none, and draws a token greedily. The
    /// batch does not change.
    ///
    /// # Errors
    /// [`Error::NothingFed`] if all sequences are empty; an error if the fed tokens are more than
    /// the rows of a step, on the CPU and on devices without timestamps; errors of the executor.
    pub async fn profile_async(&mut self) -> Result<kernels::Profile, Error> {
        let (spans, draws) = self.whole_step()?;
        self.runner.profile(&mut self.sequences, &spans, &draws).await
    }

    /// Runs one step as [`Session::agree_async`](crate::Session::agree_async) does: for every
    /// sequence that is not empty, it evaluates the fed tokens, or the last token again if there
    /// are none, and draws a token greedily, which is dropped.
    ///
    /// # Errors
    /// [`Error::NothingFed`] if all sequences are empty; an error if the fed tokens are more than
    /// the rows of a step; errors of the executor.
    ///
    /// # Panics
    /// As [`Session::agree_async`](crate::Session::agree_async).
    pub async fn agree_async(&mut self, mirror: &mut Mirror) -> Result<Vec<Agreement>, Error> {
        assert!(self.adapters().is_empty(), "the mirror has no adapters");
        let (spans, draws) = self.whole_step()?;
        self.runner.agree(mirror, &mut self.sequences, &spans, &draws, Watch::default()).await
    }

    /// The spans of a step over every sequence that is not empty, which draws greedily.
    fn whole_step(&mut self) -> Result<(Vec<Span>, Vec<SampleParams>), Error> {
        self.settle();
        let fed = |(slot, sequence): (usize, &mut Sequence)| {
            sequence.reread();
            Span { slot, until: sequence.tokens.len() }
        };
        let holding = self.sequences.iter_mut().enumerate().filter(|(_, sequence)| !sequence.tokens.is_empty());
        let spans: Vec<Span> = holding.map(fed).collect();
        if spans.is_empty() {
            return Err(Error::NothingFed);
        }
        let draws = spans.iter().map(|span| Sampling::greedy().params(span.slot as u32)).collect();
        Ok((spans, draws))
    }

    fn params(&self, slot: usize) -> SampleParams {
        self.sampling[slot.min(self.sampling.len() - 1)].params(slot as u32)
    }

    /// Abandons the steps that ran ahead.
    fn settle(&mut self) {
        self.runner.abandon(self.flight.drain(..).map(|flight| flight.pending));
        self.sequences.iter_mut().for_each(Sequence::settle);
        self.ahead = 1;
    }
}
