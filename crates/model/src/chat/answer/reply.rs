//! An answer put together from its events.

use super::event::{Event, ToolCall};
use crate::chat::Message;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What the model thought.
    pub thinking: String,
    /// The answer itself, calls that could not be read included.
    pub text: String,
    /// The calls of tools, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Why calls could not be read.
    pub malformed: Vec<String>,
}

impl Reply {
    /// Adds what came.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Thinking(text) => self.thinking.push_str(&text),
            Event::Text(text) => self.text.push_str(&text),
            Event::ToolCall(call) => self.tool_calls.push(call),
            Event::Malformed { text, reason } => {
                self.text.push_str(&text);
                self.malformed.push(reason);
            }
        }
    }

    /// The answer as the conversation remembers it. Templates decide how much of the thinking they
    /// show again.
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message {
            reasoning_content: (!self.thinking.is_empty()).then(|| self.thinking.clone()),
            tool_calls: self.tool_calls.iter().map(ToolCall::to_json).collect(),
            ..Message::assistant(self.text.clone())
        }
    }
}
