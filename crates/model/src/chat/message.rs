//! What a conversation consists of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One message, in the form that Hugging Face and OpenAI use; serializes to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`; templates decide which they take.
    pub role: String,
    /// Text, a list of parts (`{"type": "text", "text": ..}`), or null beside tool calls.
    #[serde(default)]
    pub content: Value,
    /// What the assistant thought before it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls that the assistant made, `{"type": "function", "function": {"name": .., "arguments":
    /// {..}}}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Value>,
    /// Anything else that a template may look for, such as `name` or `tool_call_id`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Message { role: role.into(), content: Value::String(content.into()), ..Message::default() }
    }

    /// What the assistant should be and do.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new("system", content)
    }

    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new("user", content)
    }

    /// What the assistant answered.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new("assistant", content)
    }
}

/// How to render a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderOptions {
    /// Whether the prompt ends where the assistant's answer begins; true by default.
    pub add_generation_prompt: bool,
    /// The functions that the model may call: a JSON array of schemas.
    pub tools: Option<Value>,
    /// Asks for thinking or against it; a template that does not know the word ignores it.
    pub enable_thinking: Option<bool>,
    /// Further variables of the template. They win over `bos_token` and its like.
    pub extra: Map<String, Value>,
    /// The time that `strftime_now` shows, in seconds since 1970, UTC; the clock's where absent.
    pub now_unix_s: Option<i64>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions { add_generation_prompt: true, tools: None, enable_thinking: None, extra: Map::new(), now_unix_s: None }
    }
}

/// The template's variables that the caller fills: all of them from outside.
pub(super) fn values(messages: &[Message], options: &RenderOptions) -> Result<Map<String, Value>, serde_json::Error> {
    let mut values = Map::new();
    values.insert("messages".into(), serde_json::to_value(messages)?);
    values.insert("tools".into(), json!(options.tools));
    values.insert("documents".into(), Value::Null);
    values.insert("add_generation_prompt".into(), options.add_generation_prompt.into());
    values.extend(options.enable_thinking.map(|on| ("enable_thinking".to_owned(), on.into())));
    values.extend(options.extra.clone());
    Ok(values)
}
