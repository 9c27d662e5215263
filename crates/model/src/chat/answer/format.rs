//! The markers between thinking, text and calls, by family.

use crate::tokenizer::{Kind, Tokenizer};

/// The part of an answer that a parser is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Text,
    /// Behind Gemma 4's `<|channel>`, before the line break that ends the channel's name.
    Channel,
    Thinking,
    Call,
}

/// How a model marks the parts of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Not at all: everything is text. Gemma 1 to 3 are such: they write calls as their prompt
    /// asks, and the prompt is the caller's.
    Plain,
    /// `<think>..</think>` opens the answer, `<tool_call>..</tool_call>` holds JSON, or
    /// Qwen3-Coder's `<function=..>`: Qwen2.5 and later.
    Qwen,
    /// `<|channel>thought ..<channel|>`, `<|tool_call>call:name{..}<tool_call|>`: Gemma 4.
    Gemma4,
}

type Markers = &'static [(&'static str, State)];

const QWEN_OPENING: Markers = &[("<think>", State::Thinking), ("<tool_call>", State::Call)];
const QWEN_TEXT: Markers = &[("<tool_call>", State::Call)];
const QWEN_THINKING: Markers = &[("</think>", State::Text)];
const QWEN_CALL: Markers = &[("</tool_call>", State::Text)];
// Ends without a beginning are control tokens and no text.
const GEMMA4_TEXT: Markers = &[
    ("<|channel>", State::Channel),
    ("<|tool_call>", State::Call),
    ("<channel|>", State::Text),
    ("<tool_call|>", State::Text),
];
const GEMMA4_THINKING: Markers = &[("<channel|>", State::Text), ("<|tool_call>", State::Call)];
const GEMMA4_CALL: Markers = &[("<tool_call|>", State::Text)];

/// Gemma 4's quotation mark, a token of its own.
pub(super) const GEMMA4_QUOTE: &str = "<|\"|>";

impl Format {
    /// The format of a model with these tokens and this chat template.
    pub fn of(template: &str, tokenizer: &Tokenizer) -> Self {
        let has = |name: &str| tokenizer.token_to_id(name).is_some();
        if has("<|channel>") || has("<|tool_call>") {
            Self::Gemma4
        } else if ["<think>", "<tool_call>"].iter().any(|name| has(name) || template.contains(name)) {
            Self::Qwen
        } else {
            Self::Plain
        }
    }

    /// The control tokens that a parser must see as text: those whose names are markers.
    pub fn controls(self, tokenizer: &Tokenizer) -> Vec<u32> {
        let states = [State::Text, State::Thinking, State::Call];
        let markers = states.iter().flat_map(|&state| self.markers(state, true)).map(|&(marker, _)| marker);
        let names = markers.chain((self == Self::Gemma4).then_some(GEMMA4_QUOTE));
        let ids = names.filter_map(|name| tokenizer.token_to_id(name));
        let mut ids: Vec<u32> = ids.filter(|&id| tokenizer.kind(id).is_some_and(Kind::is_control)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// What ends a state, and which follows.
    pub(super) fn markers(self, state: State, opens: bool) -> Markers {
        match (self, state) {
            (Self::Plain, _) | (_, State::Channel) => &[],
            (Self::Qwen, State::Text) if opens => QWEN_OPENING,
            (Self::Qwen, State::Text) => QWEN_TEXT,
            (Self::Qwen, State::Thinking) => QWEN_THINKING,
            (Self::Qwen, State::Call) => QWEN_CALL,
            (Self::Gemma4, State::Text) => GEMMA4_TEXT,
            (Self::Gemma4, State::Thinking) => GEMMA4_THINKING,
            (Self::Gemma4, State::Call) => GEMMA4_CALL,
        }
    }

    /// Whether an answer that begins so opens with thinking, as far as can be seen.
    pub(super) fn may_open(self, text: &str) -> bool {
        QWEN_OPENING.iter().any(|(marker, _)| text.starts_with(marker) || marker.starts_with(text))
    }

    pub(super) fn call_markers(self) -> (&'static str, &'static str) {
        match self {
            Self::Gemma4 => ("<|tool_call>", "<tool_call|>"),
            Self::Qwen | Self::Plain => ("<tool_call>", "</tool_call>"),
        }
    }

    /// What opens and closes thinking.
    fn thinking(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Plain => None,
            Self::Qwen => Some(("<think>", "</think>")),
            Self::Gemma4 => Some(("<|channel>thought", "<channel|>")),
        }
    }

    /// Whether a prompt that ends so has begun the thinking: nothing but the marker (and, for Gemma
    /// 4, the channel's name) may stand there, for what a user wrote is always followed by the
    /// template's own words.
    pub(super) fn leaves_thinking_open(self, tail: &str) -> bool {
        self.thinking().is_some_and(|(open, _)| tail.trim_end().ends_with(open))
    }

    /// Whether an answer begins with thinking.
    pub(crate) fn opens_thinking(self, answer: &str) -> bool {
        self.thinking().is_some_and(|(open, _)| answer.trim_start().starts_with(open))
    }

    /// A prompt without the empty thinking at its end, if it ends so.
    pub(crate) fn without_empty_thinking(self, prompt: &str) -> Option<&str> {
        let (open, close) = self.thinking()?;
        prompt.trim_end().strip_suffix(close)?.trim_end().strip_suffix(open)
    }
}
