//! Tools that the model may call: reads their schemas, prints calls as JSON, makes result messages.

use super::talk::Talk;
use crate::exit::usage;
use crate::text;
use anyhow::{Context, Result};
use model::chat::{Message, ToolCall};
use serde_json::{Value, json};
use std::path::Path;

/// Reads `[{"type": "function", "function": {"name": ..}}, ..]`. A single schema and schemas
/// without the outer object are accepted too.
pub fn read(path: &Path) -> Result<Value> {
    let text = text::file(path)?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    let all = match value {
        Value::Array(all) if !all.is_empty() => all,
        Value::Object(one) => vec![Value::Object(one)],
        _ => return Err(usage(format!("{} is not an array of tools", path.display()))),
    };
    let tool = |tool: Value| {
        let tool = if tool.get("function").is_some() { tool } else { json!({ "type": "function", "function": tool }) };
        match tool["function"]["name"].as_str() {
            Some(name) if !name.is_empty() => Ok(tool),
            _ => Err(usage(format!(
                "{}: a tool has no name: {{\"type\": \"function\", \"function\": {{\"name\": ..}}}}",
                path.display()
            ))),
        }
    };
    all.into_iter().map(tool).collect()
}

/// A tool call as JSON.
pub fn json(call: &ToolCall) -> Value {
    json!({ "name": call.name, "arguments": call.arguments })
}

/// The message with a tool's result for the first call that has no answer yet.
pub fn result(talk: &Talk, text: &str) -> Option<Message> {
    let asked = talk.messages.iter().rposition(|message| message.role == "assistant")?;
    let answered = talk.messages[asked..].iter().filter(|message| message.role == "tool").count();
    let call = talk.messages[asked].tool_calls.get(answered)?;
    let mut message = Message::new("tool", text.trim());
    message.extra.insert("name".to_string(), call["function"]["name"].clone());
    Some(message)
}
