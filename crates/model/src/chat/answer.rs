//! What a model answers, taken apart while it comes: thinking, text, and calls of tools.
//!
//! A [`Parser`] takes the answer in pieces that may be cut anywhere, control tokens included (see
//! [`Format::controls`]), and gives [`Event`]s as soon as they are certain. Nothing that a model
//! writes is an error: what looks like a call and is none comes as [`Event::Malformed`], with the
//! reason and every character.

mod event;
mod format;
mod gemma;
mod qwen;
mod reply;

use crate::tokenizer::{Decoder, Tokenizer};
use serde_json::Value;

pub use event::{Event, ToolCall};
pub use format::Format;
use format::State;
pub use reply::Reply;

/// Characters of a channel's name at most; what is longer is thinking.
const CHANNEL_NAME: usize = 32;
/// Bytes of white space that wait for what follows them, at most.
const WHITE: usize = 256;

/// Takes an answer apart piece by piece.
#[derive(Clone, Debug)]
pub struct Parser {
    format: Format,
    tools: Option<Value>,
    state: State,
    /// What came and is not told yet: white space, the beginning of a marker, a call.
    held: String,
    /// Bytes of `held` in which no marker begins.
    scanned: usize,
    /// Whether nothing was told yet, so that thinking may begin.
    opens: bool,
    /// Whether white space is left out until something else comes.
    skips: bool,
    decoder: Decoder,
}

impl Parser {
    /// A parser at the start of an answer.
    pub fn new(format: Format) -> Self {
        let (held, decoder) = (String::new(), Decoder::showing([]));
        Self { format, tools: None, state: State::Text, held, scanned: 0, opens: true, skips: false, decoder }
    }

    /// A parser for the answer to a prompt that ends in `tail`: templates may open or close the
    /// thinking themselves.
    pub fn after(format: Format, tail: &str) -> Self {
        let mut parser = Self::new(format);
        if format.leaves_thinking_open(tail) {
            parser.enter(State::Thinking);
        }
        parser
    }

    /// Gives the parser the schemas of the tools. A parameter of type string then stays a string,
    /// even where it reads like a number. Only Qwen3-Coder's calls leave the type open.
    #[must_use]
    pub fn with_tools(self, tools: Option<Value>) -> Self {
        Self { tools, ..self }
    }

    /// Gives the parser the control tokens that [`Parser::push_id`] must turn into text: those of
    /// this tokenizer whose names are markers.
    #[must_use]
    pub fn with_tokenizer(self, tokenizer: &Tokenizer) -> Self {
        Self { decoder: Decoder::showing(self.format.controls(tokenizer)), ..self }
    }

    /// Takes more of the answer.
    pub fn push(&mut self, text: &str) -> Vec<Event> {
        self.held.push_str(text);
        let mut events = vec![];
        while self.step(&mut events) {}
        events
    }

    /// Takes a token; the same tokenizer must have been given to [`Parser::with_tokenizer`].
    pub fn push_id(&mut self, tokenizer: &Tokenizer, id: u32) -> Vec<Event> {
        let text = self.decoder.push(tokenizer, id).to_owned();
        self.push(&text)
    }

    /// What is left when the answer has ended. A call without its end is read if it is whole.
    pub fn finish(&mut self) -> Vec<Event> {
        let tail = self.decoder.finish().to_owned();
        let mut events = self.push(&tail);
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Call => events.push(self.call(&rest, false)),
            State::Text => self.tell(&rest, &mut events),
            State::Channel => {}
            State::Thinking => self.tell(rest.trim_end(), &mut events),
        }
        *self = Self { tools: self.tools.take(), decoder: self.decoder.clone(), ..Self::new(self.format) };
        events
    }

    /// One step; false when more text is needed.
    fn step(&mut self, events: &mut Vec<Event>) -> bool {
        if self.skips {
            let white = self.held.len() - self.held.trim_start().len();
            self.held.drain(..white);
            self.scanned = 0;
            self.skips = self.held.is_empty();
        }
        if self.state == State::Channel {
            return self.channel();
        }
        let markers = self.format.markers(self.state, self.opens && self.format.may_open(self.held.trim_start()));
        let found = markers
            .iter()
            .filter_map(|&(marker, next)| Some((self.scanned + self.held[self.scanned..].find(marker)?, marker, next)));
        match found.min_by_key(|found| found.0) {
            Some((at, marker, next)) => {
                let before: String = self.held.drain(..at + marker.len()).collect();
                self.pass(&before[..at], next, events);
                true
            }
            None => {
                self.wait(markers, events);
                false
            }
        }
    }

    /// A marker came after `before`.
    fn pass(&mut self, before: &str, next: State, events: &mut Vec<Event>) {
        match self.state {
            State::Call => {
                let event = self.call(before, true);
                events.push(event);
            }
            _ => self.tell(before.trim_end(), events),
        }
        self.enter(next);
    }

    fn enter(&mut self, state: State) {
        (self.state, self.scanned) = (state, 0);
        self.opens = false;
        self.skips = state != State::Call;
    }

    /// No marker is in `held`: tells what cannot belong to one.
    fn wait(&mut self, markers: &[(&str, State)], events: &mut Vec<Event>) {
        let begun = markers.iter().map(|(marker, _)| begun(&self.held, marker)).max().unwrap_or(0);
        let certain = self.held.len() - begun;
        if self.state == State::Call {
            self.scanned = certain;
            return;
        }
        let text = &self.held[..certain];
        let white = text.len() - text.trim_end().len();
        let told = if white > WHITE { certain } else { certain - white };
        let text: String = self.held.drain(..told).collect();
        self.scanned = self.held.len() - begun;
        self.tell(&text, events);
    }

    /// Reads the channel's name; what is not one is thinking.
    fn channel(&mut self) -> bool {
        match self.held.find(['\n', '<']) {
            Some(end) if end <= CHANNEL_NAME => drop(self.held.drain(..end)),
            None if self.held.len() <= CHANNEL_NAME => return false,
            _ => {}
        }
        self.enter(State::Thinking);
        true
    }

    fn tell(&mut self, text: &str, events: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        self.opens &= text.trim().is_empty();
        let text = text.to_owned();
        events.push(if self.state == State::Thinking { Event::Thinking(text) } else { Event::Text(text) });
    }

    fn call(&self, body: &str, closed: bool) -> Event {
        let read = match self.format {
            Format::Gemma4 => gemma::call(body),
            Format::Qwen | Format::Plain => qwen::call(body, self.tools.as_ref()),
        };
        match read {
            Ok(call) => Event::ToolCall(call),
            Err(reason) => {
                let (open, close) = self.format.call_markers();
                let text = [open, body, if closed { close } else { "" }].concat();
                Event::Malformed {
                    text,
                    reason: if closed { reason } else { format!("the answer ends within it; {reason}") },
                }
            }
        }
    }
}

/// Bytes at the end of `text` with which `marker` may begin.
fn begun(text: &str, marker: &str) -> usize {
    let ends = marker.char_indices().map(|(at, _)| at).skip(1);
    ends.filter(|&len| text.ends_with(&marker[..len])).last().unwrap_or(0)
}
