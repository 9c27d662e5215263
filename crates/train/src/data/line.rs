//! A line of JSON: what it has is told by its keys.

use super::ids;
use crate::batch::Document;
use model::chat::Message;
use serde_json::{Map, Value};

/// Messages of a conversation at most: each turn of the assistant takes two renderings.
const MESSAGES: usize = 1024;

/// The keys of each form. The first one of a form tells it from the others.
const FORMS: [&[&str]; 5] = [&ids::KEYS, &["messages", "tools"], &["prompt", "completion"], &["instruction", "input", "output"], &["text"]];

/// What a line has.
pub(super) enum Line {
    Ids(Document),
    /// A conversation, and the functions that it may call.
    Messages(Vec<Message>, Option<Value>),
    Completion {
        prompt: String,
        completion: String,
    },
    Text(String),
}

impl Line {
    /// Reads a line. The error is the reason.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let object = object(bytes)?;
        let form = FORMS.iter().find(|form| object.contains_key(form[0]));
        let form = form.ok_or_else(|| format!("it has none of the keys {}", FORMS.map(|form| form[0]).join(", ")))?;
        only(&object, form)?;
        Ok(match form[0] {
            "ids" => Self::Ids(ids::document(&object)?),
            "messages" => Self::Messages(messages(&object)?, object.get("tools").filter(|tools| !tools.is_null()).cloned()),
            "prompt" => Self::Completion { prompt: text(&object, "prompt")?, completion: text(&object, "completion")? },
            "instruction" => Self::Completion { prompt: instruction(&object)?, completion: text(&object, "output")? },
            _ => Self::Text(text(&object, "text")?),
        })
    }
}

/// The object of a line.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes.trim_ascii_end()).map_err(|error| format!("no JSON: {error}"))? {
        Value::Object(object) => Ok(object),
        other => Err(format!("{} is no object", short(&other))),
    }
}

/// Refuses other keys than these.
pub(super) fn only(object: &Map<String, Value>, keys: &[&str]) -> Result<(), String> {
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("the key {} is none of {}", short(&Value::String(key.clone())), keys.join(", "))),
        None => Ok(()),
    }
}

fn text(object: &Map<String, Value>, key: &str) -> Result<String, String> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(format!("{key} is {}, not a text", short(other))),
        None => Err(format!("it has no {key}")),
    }
}

/// Alpaca's instruction, and the input that it is about, if there is one.
fn instruction(object: &Map<String, Value>) -> Result<String, String> {
    let instruction = text(object, "instruction")?;
    let input = if object.contains_key("input") { text(object, "input")? } else { String::new() };
    Ok(if input.is_empty() { instruction } else { format!("{instruction}\n\n{input}") })
}

fn messages(object: &Map<String, Value>) -> Result<Vec<Message>, String> {
    let Some(Value::Array(list)) = object.get("messages") else { return Err("messages is no list".to_string()) };
    if list.len() > MESSAGES {
        return Err(format!("{} messages, at most {MESSAGES} are read", list.len()));
    }
    list.iter().enumerate().map(|(n, value)| message(value).map_err(|reason| format!("message {}: {reason}", n + 1))).collect()
}

fn message(value: &Value) -> Result<Message, String> {
    let message: Message = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    if !["system", "user", "assistant", "tool"].contains(&message.role.as_str()) {
        return Err(format!("the role {} is none of system, user, assistant, tool", short(&Value::String(message.role))));
    }
    match &message.content {
        None | Some(Value::String(_) | Value::Array(_) | Value::Null) => Ok(message),
        Some(other) => Err(format!("content is {}, not a text", short(other))),
    }
}

/// A value for a message of an error.
pub(super) fn short(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}
