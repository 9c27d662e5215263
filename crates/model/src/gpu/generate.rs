//! Generation: submits steps ahead of reading their ids, and streams the text of the ids that are
//! read.

use crate::answer::AnswerText;
pub use crate::answer::Finish;
use crate::chat::{Message, RenderOptions};
use crate::error::Error;
pub use crate::options::GenerateOptions;
use crate::recording::{Head, drawn};
use crate::session::Session;
use crate::tokenizer::Special;
use gguf::{BoxReport, MaybeSend, MaybeSync, Report};
use kernels::{Pending, Progress};
use std::collections::VecDeque;
use std::slice::from_mut;
use std::sync::atomic::Ordering;

/// One token of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub id: u32,
    /// Text to show now. It is empty while a character or a possible stop string is incomplete.
    pub text: String,
    /// Natural logarithm of the token's probability before penalties, filters and temperature.
    pub log_prob: f32,
}

/// An iterator over the tokens of an answer. If it is dropped early, the session ends at the last
/// token that was read.
pub struct Generate<'a> {
    session: &'a mut Session,
    options: GenerateOptions,
    /// Steps that are submitted and not read yet. Each draws one token.
    flight: VecDeque<Pending>,
    depth: usize,
    /// Whether a token is being computed. It stays set if the future of a token is dropped.
    busy: bool,
    /// Whether the next step first evaluates tokens of the prompt: the first step does, and the
    /// first step after a shift.
    fresh: bool,
    text: AnswerText,
    finish: Option<Finish>,
    progress: Option<BoxReport<'a>>,
}

impl Session {
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
}

impl<'a> Generate<'a> {
    fn new(session: &'a mut Session, options: GenerateOptions) -> Self {
        let depth = session.runner.depth();
        let text = AnswerText::new(session.model().tokenizer(), &options);
        Self {
            session,
            options,
            flight: VecDeque::new(),
            depth,
            busy: false,
            fresh: true,
            text,
            finish: None,
            progress: None,
        }
    }

    /// Calls `report` with the number of tokens while the prompt is evaluated.
    #[must_use]
    pub fn with_progress(mut self, report: impl Fn(Progress) + MaybeSend + MaybeSync + 'a) -> Self {
        self.progress = Some(Box::new(report));
        self
    }

    /// Why the answer ended. `None` until the iterator has ended.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    async fn submit(&mut self) -> Result<(), Error> {
        // The random numbers depend on position and sequence number. A shift uses positions again,
        // so the number of dropped tokens is given as the sequence number.
        let params = self.options.sampling.params(self.session.dropped() as u32);
        let head = Head::Sample { penalize: params.penalizes() };
        let session = &mut *self.session;
        if !std::mem::take(&mut self.fresh) {
            self.flight.push_back(session.start(session.sequence.evaluated + 1, head, &[params]).await?);
            return Ok(());
        }
        // The first step that draws also evaluates the rest of the prompt.
        session.sequence.reread();
        let last = session.tokens().len() - 1;
        let report: Option<Report<'_>> = self.progress.as_deref().map(|p| p as Report<'_>);
        let mut prefill = session.prefill_to(last, 1, head, report).await?;
        self.flight.push_back(session.start(last + 1, head, &[params]).await?);
        prefill.finish().await
    }

    /// The reason why no further step may start, or `None` if one may.
    fn bound(&self) -> Option<Finish> {
        if self.options.max_tokens.is_some_and(|limit| self.text.tokens() + self.flight.len() >= limit) {
            return Some(Finish::Length);
        }
        // After the prompt, a step evaluates one position and draws the token of the position
        // behind it.
        let room = self.fresh || self.session.sequence.evaluated + 1 < self.session.context();
        (!room).then_some(Finish::Context)
    }

    /// Starts as many steps as may be in flight. If all steps are read and the context is full,
    /// shifts the context first, if the options ask for it.
    async fn fill(&mut self) -> Result<(), Error> {
        if self.flight.is_empty()
            && self.bound() == Some(Finish::Context)
            && self.session.runner.options().shift.is_some()
        {
            self.fresh = self.session.shift()?;
        }
        while self.flight.len() < self.depth && self.bound().is_none() {
            self.submit().await?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<Option<Generated>, Error> {
        if self.session.cancel.load(Ordering::Relaxed) {
            self.end(Finish::Cancelled).await?;
            return Ok(None);
        }
        self.fill().await?;
        let Some(pending) = self.flight.pop_front() else {
            self.end(self.bound().unwrap_or(Finish::Context)).await?;
            return Ok(None);
        };
        let Some((id, log_prob)) = drawn(&pending.wait_async().await?).next() else {
            unreachable!("one row was asked for")
        };
        if !log_prob.is_finite() {
            let position = self.session.tokens().len() - 1;
            return Err(self.session.runner.not_finite(from_mut(&mut self.session.sequence), 0, position).await);
        }
        self.session.sequence.tokens.push(id);
        let (mut text, mut finish) = self.text.push(id);
        if finish.is_none() && self.flight.is_empty() {
            let shifts = self.session.runner.options().shift.is_some();
            if let Some(bound) = self.bound().filter(|_| !shifts) {
                let (rest, stop) = self.text.finish();
                text.push_str(&rest);
                finish = stop.or(Some(bound));
            }
        }
        if let Some(finish) = finish {
            self.end(finish).await?;
        }
        Ok(Some(Generated { id, text, log_prob }))
    }

    /// Ends the answer. Steps that ran ahead are waited for, so that their buffers become free, and
    /// their results are dropped.
    async fn end(&mut self, finish: Finish) -> Result<(), Error> {
        self.finish.get_or_insert(finish);
        self.session.sequence.settle();
        while let Some(pending) = self.flight.pop_front() {
            pending.wait_async().await?;
        }
        Ok(())
    }

    /// Abandons the steps in flight. Later steps continue at the last token that was read.
    fn abandon(&mut self) {
        self.session.runner.abandon(self.flight.drain(..));
        self.session.sequence.settle();
    }

    /// Computes the next token; `None` after the end. If the future is dropped before it is ready,
    /// no token is lost: the next call computes the same token.
    pub async fn next_async(&mut self) -> Option<Result<Generated, Error>> {
        if self.finish.is_some() {
            return None;
        }
        if std::mem::replace(&mut self.busy, true) {
            self.abandon();
            self.fresh = true;
        }
        let result = self.step().await;
        if let Err(error) = &result {
            let finish = if matches!(error, Error::Cancelled) { Finish::Cancelled } else { Finish::End };
            let _ = self.end(finish).await;
            if matches!(error, Error::Cancelled) {
                return None;
            }
        }
        self.busy = false;
        result.transpose()
    }
}

impl Drop for Generate<'_> {
    fn drop(&mut self) {
        self.abandon();
    }
}
