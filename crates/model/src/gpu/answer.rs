//! From the ids of an answer to its text and its end: end tokens, stops, the limit of tokens.

use crate::options::GenerateOptions;
use crate::tokenizer::{Control, Decoder, Tokenizer};
use std::sync::Arc;

/// Why a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn.
    End,
    /// This stop was found: its text, or the control token with this name.
    Stop(String),
    /// The limit of tokens was reached.
    Length,
    /// The context is full.
    Context,
    /// The cancel flag was set.
    Cancelled,
}

/// Turns the drawn ids of one answer into text, and finds the id that ends the answer.
/// [`Generate`](crate::Generate) has one. A program with a [`Batch`](crate::Batch) makes one for
/// each answer.
///
/// A stop that is exactly the name of a control token ends the answer at this token, whether or not
/// control tokens are shown. Every stop also ends the answer at its text.
#[derive(Clone)]
pub struct AnswerText {
    tokenizer: Arc<Tokenizer>,
    decoder: Decoder,
    stops: Stops,
    /// The control tokens that are stops, ascending.
    stop_ids: Vec<u32>,
    ignore_end: bool,
    max_tokens: Option<usize>,
    tokens: usize,
}

impl AnswerText {
    /// The start of an answer. Of the options, how tokens are sampled does not matter.
    #[must_use]
    pub fn new(tokenizer: &Arc<Tokenizer>, options: &GenerateOptions) -> Self {
        let shown = options.shown.iter().copied();
        let mut stop_ids: Vec<u32> = options.stops.iter().filter_map(|stop| tokenizer.control(stop)).collect();
        stop_ids.sort_unstable();
        Self {
            tokenizer: Arc::clone(tokenizer),
            decoder: if options.show_control { Decoder::new(Control::Show) } else { Decoder::showing(shown) },
            stops: Stops::new(&options.stops),
            stop_ids,
            ignore_end: options.ignore_end,
            max_tokens: options.max_tokens,
            tokens: 0,
        }
    }

    /// Number of ids pushed so far.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The text that `id` completes, and why the answer ends with this id if it does. The text is
    /// empty while a character or a possible stop is incomplete. With a finish, it is all text that
    /// is left.
    pub fn push(&mut self, id: u32) -> (String, Option<Finish>) {
        self.tokens += 1;
        let ended = if self.stop_ids.binary_search(&id).is_ok() {
            self.tokenizer.id_to_token(id).map(|name| Finish::Stop(name.into_owned()))
        } else {
            (self.tokenizer.is_end(id) && !self.ignore_end).then_some(Finish::End)
        };
        if ended.is_some() {
            return self.ended(String::new(), ended);
        }
        let (text, stop) = self.stops.push(self.decoder.push(&self.tokenizer, id));
        match stop {
            Some(stop) => (text, Some(Finish::Stop(stop))),
            None if self.max_tokens.is_some_and(|limit| self.tokens >= limit) => self.ended(text, Some(Finish::Length)),
            None => (text, None),
        }
    }

    /// The text that is still held back, for an answer that the caller ends. The second value is
    /// the stop that this text completes, if it does.
    pub fn finish(&mut self) -> (String, Option<Finish>) {
        self.ended(String::new(), None)
    }

    /// `text` with the text behind it that was held back. A stop in it ends the answer before
    /// `finish` does.
    fn ended(&mut self, mut text: String, finish: Option<Finish>) -> (String, Option<Finish>) {
        let (more, stop) = self.stops.push(self.decoder.finish());
        text.push_str(&more);
        match stop {
            Some(stop) => (text, Some(Finish::Stop(stop))),
            None => (text + &self.stops.finish(), finish),
        }
    }
}

/// Finds stop strings in streamed text. Holds text back while it may be the start of one.
#[derive(Clone, Debug, Default)]
struct Stops {
    strings: Vec<String>,
    held: String,
}

impl Stops {
    fn new(strings: &[String]) -> Self {
        Self { strings: strings.iter().filter(|s| !s.is_empty()).cloned().collect(), held: String::new() }
    }

    /// Adds text. Returns the text that can be shown, and the stop string if one was found.
    fn push(&mut self, text: &str) -> (String, Option<String>) {
        self.held.push_str(text);
        let found = self.strings.iter().filter_map(|s| self.held.find(s.as_str()).map(|at| (at, s))).min();
        if let Some((at, stop)) = found {
            let stop = stop.clone();
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(stop));
        }
        let mut keep = 0;
        for stop in &self.strings {
            let partial =
                (1..stop.len()).filter(|&n| stop.is_char_boundary(n)).rev().find(|&n| self.held.ends_with(&stop[..n]));
            keep = keep.max(partial.unwrap_or(0));
        }
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), None)
    }

    /// The text that is still held back, at the end of the stream.
    fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn a_stop_string_across_pieces_is_found_and_nothing_of_it_shown() {
        let mut stops = Stops::new(&["END".to_string(), "stop".to_string()]);
        assert_eq!(stops.push("one E"), ("one ".to_string(), None));
        assert_eq!(stops.push("N"), (String::new(), None));
        assert_eq!(stops.push("D two"), (String::new(), Some("END".to_string())));
    }

    #[test]
    fn a_false_start_is_shown_later() {
        let mut stops = Stops::new(&["END".to_string()]);
        assert_eq!(stops.push("EN"), (String::new(), None));
        assert_eq!(stops.push("Glish é"), ("ENGlish é".to_string(), None));
        assert_eq!(stops.push("E"), (String::new(), None));
        assert_eq!(stops.finish(), "E");
    }
}
