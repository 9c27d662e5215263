//! The parts of an answer.

use serde_json::{Map, Value, json};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// More of what the model thinks before it answers.
    Thinking(String),
    /// More of the answer itself.
    Text(String),
    /// A call of a tool, whole.
    ToolCall(ToolCall),
    /// A call that cannot be read; to be shown as text.
    Malformed {
        /// What the model wrote, markers included.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The arguments by parameter, in the order in which the model gave them.
    pub arguments: Map<String, Value>,
}

impl ToolCall {
    /// The form that messages and templates use: `{"type": "function", "function": {"name": ..,
    /// "arguments": {..}}}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "type": "function", "function": { "name": self.name, "arguments": self.arguments } })
    }
}
