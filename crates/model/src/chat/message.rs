//! What a conversation consists of.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::strftime::{self, NOW};

/// One message, in the form that Hugging Face and OpenAI use; serializes to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`; templates decide which they take.
    pub role: String,
    /// Text, a list of parts (`{"type": "text", "text": ..}`), or null beside tool calls. Parts of
    /// text are joined by line breaks if the template shows only text. Templates print null as
    /// `None`, as in transformers, but beside tool calls it is an empty text for such a template.
    /// They print nothing for a message without content.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// What the assistant thought before it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls that the assistant made, `{"type": "function", "function": {"name": .., "arguments":
    /// {..}}}`. Arguments may be an object or JSON text: a template gets the form that it shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Value>,
    /// Anything else that a template may look for, such as `name` or `tool_call_id`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Message { role: role.into(), content: Some(Value::String(content.into())), ..Message::default() }
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

/// A value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// How to render a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
        RenderOptions {
            add_generation_prompt: true,
            tools: None,
            enable_thinking: None,
            extra: Map::new(),
            now_unix_s: None,
        }
    }
}

impl RenderOptions {
    /// Sets whether the prompt ends where the assistant's answer begins.
    #[must_use]
    pub fn add_generation_prompt(self, add: bool) -> Self {
        Self { add_generation_prompt: add, ..self }
    }

    /// Sets the functions that the model may call: a JSON array of schemas. `None` offers none.
    #[must_use]
    pub fn tools(self, tools: impl Into<Option<Value>>) -> Self {
        Self { tools: tools.into(), ..self }
    }

    /// Asks for thinking or against it. `None` leaves the choice to the template.
    #[must_use]
    pub fn enable_thinking(self, thinking: impl Into<Option<bool>>) -> Self {
        Self { enable_thinking: thinking.into(), ..self }
    }

    /// Sets further variables of the template.
    #[must_use]
    pub fn extra(self, variables: Map<String, Value>) -> Self {
        Self { extra: variables, ..self }
    }

    /// Sets the time that `strftime_now` shows, in seconds since 1970, UTC. `None` asks the clock.
    #[must_use]
    pub fn now_unix_s(self, seconds: impl Into<Option<i64>>) -> Self {
        Self { now_unix_s: seconds.into(), ..self }
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
    let now = options.now_unix_s.or_else(strftime::now_unix_s);
    values.insert(NOW.to_owned(), now.into());
    Ok(values)
}
