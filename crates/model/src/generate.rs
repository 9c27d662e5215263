//! Generation: steps submitted ahead of the ids that are read, text streamed behind them.

use crate::error::Error;
use crate::runner::{Head, drawn};
use crate::sampling::{Sampling, Stops};
use crate::session::{PrefillProgress, Session};
use crate::tokenizer::{Control, Decoder};
use kernels::Pending;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// What a generation is made with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GenerateOptions {
    pub sampling: Sampling,
    /// Tokens at most; none goes on until the model or the context ends.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; they are not shown.
    pub stops: Vec<String>,
    /// Go on past end tokens, for benchmarks.
    pub ignore_end: bool,
    /// Show control tokens as text instead of leaving them out.
    pub show_control: bool,
    /// Control tokens shown although others are left out, such as those that a [`Parser`](crate::chat::Parser) needs.
    pub shown: Vec<u32>,
}

impl GenerateOptions {
    /// How tokens are drawn.
    #[must_use]
    pub fn sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }

    /// Tokens at most; none goes on until the model or the context ends.
    #[must_use]
    pub fn max_tokens(self, tokens: impl Into<Option<usize>>) -> Self {
        Self { max_tokens: tokens.into(), ..self }
    }

    /// Texts that end the answer and are not shown.
    #[must_use]
    pub fn stops(self, stops: Vec<String>) -> Self {
        Self { stops, ..self }
    }

    /// Whether to go on past end tokens.
    #[must_use]
    pub fn ignore_end(self, ignore: bool) -> Self {
        Self { ignore_end: ignore, ..self }
    }

    /// Whether control tokens are shown as text.
    #[must_use]
    pub fn show_control(self, show: bool) -> Self {
        Self { show_control: show, ..self }
    }

    /// Control tokens that are shown although others are left out.
    #[must_use]
    pub fn shown(self, ids: Vec<u32>) -> Self {
        Self { shown: ids, ..self }
    }
}

/// One token of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub id: u32,
    /// What may be shown now: empty while a character or a possible stop string is incomplete.
    pub text: String,
    /// Natural logarithm of the token's probability before penalties, filters and temperature.
    pub log_prob: f32,
}

/// Why a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn.
    End,
    /// A stop string came.
    Stop(String),
    /// The limit of tokens.
    Length,
    /// The context is full.
    Context,
    /// The cancel flag was set.
    Cancelled,
}

/// An answer under way. Dropping it early leaves the session at the last token that was read.
pub struct Generate<'a> {
    session: &'a mut Session,
    options: GenerateOptions,
    /// Steps that were submitted and not read; each makes one token.
    flight: VecDeque<Pending>,
    depth: usize,
    submitted: usize,
    /// The next step reads what is not evaluated before it draws: it is the first, or the first after a shift.
    fresh: bool,
    decoder: Decoder,
    stops: Stops,
    finish: Option<Finish>,
    progress: Option<Box<dyn Fn(usize, usize) + Sync + 'a>>,
}

impl<'a> Generate<'a> {
    pub(crate) fn new(session: &'a mut Session, options: GenerateOptions) -> Self {
        let depth = session.runner.depth();
        let stops = Stops::new(&options.stops);
        let shown = options.shown.iter().copied();
        let decoder = if options.show_control { Decoder::new(Control::Show) } else { Decoder::showing(shown) };
        Self { session, options, flight: VecDeque::new(), depth, submitted: 0, fresh: true, decoder, stops, finish: None, progress: None }
    }

    /// Reports (tokens done, tokens in all) while the prompt is read.
    #[must_use]
    pub fn with_progress(mut self, report: impl Fn(usize, usize) + Sync + 'a) -> Self {
        self.progress = Some(Box::new(report));
        self
    }

    /// Why the answer ended, once the iterator has.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    fn submit(&mut self) -> Result<(), Error> {
        // A position that comes again after a shift draws other numbers.
        let params = self.options.sampling.params(self.session.dropped() as u32);
        let head = Head::Sample { penalize: params.penalizes() };
        let session = &mut *self.session;
        let until = if std::mem::take(&mut self.fresh) {
            // The step that draws first evaluates the rest of the prompt too.
            session.sequence.reread();
            let last = session.tokens().len() - 1;
            let report: Option<PrefillProgress<'_>> = self.progress.as_deref().map(|p| p as PrefillProgress<'_>);
            session.prefill_to(last, session.runner.options().chunk as usize - 1, head, report)?;
            last + 1
        } else {
            session.sequence.evaluated + 1
        };
        let pending = session.start(until, head, &[params])?;
        self.submitted += 1;
        self.flight.push_back(pending);
        Ok(())
    }

    /// Why no further step may start, if none may.
    fn bound(&self) -> Option<Finish> {
        if self.options.max_tokens.is_some_and(|limit| self.submitted >= limit) {
            return Some(Finish::Length);
        }
        // A token is drawn for the position after the last that is evaluated, once the prompt is.
        let room = self.fresh || self.session.sequence.evaluated + 1 < self.session.context();
        (!room).then_some(Finish::Context)
    }

    /// Starts as many steps as may be in flight; when all are read and the context is full, it is shifted if that is asked for.
    fn fill(&mut self) -> Result<(), Error> {
        if self.flight.is_empty() && self.bound() == Some(Finish::Context) && self.session.runner.options().shift.is_some() {
            self.fresh = self.session.shift()?;
        }
        while self.flight.len() < self.depth && self.bound().is_none() {
            self.submit()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Generated>, Error> {
        if self.session.cancel.load(Ordering::Relaxed) {
            self.end(Finish::Cancelled)?;
            return Ok(None);
        }
        self.fill()?;
        let Some(pending) = self.flight.pop_front() else {
            self.end(self.bound().unwrap_or(Finish::Context))?;
            return Ok(None);
        };
        let Some((id, log_prob)) = drawn(&pending.wait()?).next() else { unreachable!("one row was asked for") };
        if !log_prob.is_finite() {
            return Err(Error::NonFinite { sequence: 0, position: self.session.tokens().len() - 1 });
        }
        self.session.sequence.tokens.push(id);
        let tokenizer = std::sync::Arc::clone(self.session.model().tokenizer());
        if tokenizer.is_end(id) && !self.options.ignore_end {
            self.end(Finish::End)?;
            let text = self.rest();
            return Ok(Some(Generated { id, text, log_prob }));
        }
        let shown = self.decoder.push(&tokenizer, id).to_string();
        let (mut text, stop) = self.stops.push(&shown);
        match stop {
            Some(stop) => self.end(Finish::Stop(stop))?,
            None if self.flight.is_empty() => {
                let shifts = self.session.runner.options().shift.is_some();
                if let Some(finish) = self.bound().filter(|finish| *finish != Finish::Context || !shifts) {
                    self.end(finish)?;
                    text.push_str(&self.rest());
                }
            }
            None => {}
        }
        Ok(Some(Generated { id, text, log_prob }))
    }

    /// What the decoder and the stop strings still hold.
    fn rest(&mut self) -> String {
        let tail = self.decoder.finish().to_string();
        let (mut text, stop) = self.stops.push(&tail);
        if stop.is_none() {
            text.push_str(&self.stops.finish());
        }
        text
    }

    /// Ends the answer: steps that ran ahead are read, so that their buffers return, and forgotten.
    fn end(&mut self, finish: Finish) -> Result<(), Error> {
        self.finish.get_or_insert(finish);
        let read: Result<Vec<_>, _> = self.flight.drain(..).map(Pending::wait).collect();
        self.session.sequence.settle();
        read.map(|_| ()).map_err(Error::from)
    }
}

impl Iterator for Generate<'_> {
    type Item = Result<Generated, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finish.is_some() {
            return None;
        }
        let result = self.step();
        if let Err(error) = &result {
            let finish = if matches!(error, Error::Cancelled) { Finish::Cancelled } else { Finish::End };
            let _ = self.end(finish);
            if matches!(error, Error::Cancelled) {
                return None;
            }
        }
        result.transpose()
    }
}

impl Drop for Generate<'_> {
    fn drop(&mut self) {
        let _ = self.end(Finish::Cancelled);
    }
}
