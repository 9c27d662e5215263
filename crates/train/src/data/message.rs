//! Messages of conversations, in the forms that data commonly has.

use super::json::{filled, parsed, short};
use super::keys::{Meaning, Role, has_word};
use model::chat::{ChatTemplate, Message, RenderOptions};
use serde_json::{Map, Value, json};

/// Messages of a conversation at most: each turn of the assistant takes two renderings.
const MESSAGES: usize = 1024;
/// Keys of a message at most: each one is searched in the template.
pub(super) const KEYS: usize = 64;

/// A message and the factor on the loss of its tokens.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub message: Message,
    /// 0 for a turn that is not learnt.
    pub weight: f32,
    /// Whether it is a part of a prompt, of which nothing is learnt.
    pub is_prompt: bool,
}

impl Turn {
    pub fn new(message: Message) -> Self {
        Self { message, weight: 1.0, is_prompt: false }
    }

    pub fn is_assistant(&self) -> bool {
        self.message.role == "assistant"
    }

    /// Whether the turn is learnt.
    pub fn is_learnt(&self) -> bool {
        self.is_assistant() && !self.is_prompt && self.weight > 0.0
    }

    /// Whether nothing is said, thought or called.
    pub fn is_empty(&self) -> bool {
        let Message { content, reasoning_content, tool_calls, extra, .. } = &self.message;
        let text = |part: &Value| part.as_str().or_else(|| part["text"].as_str()).is_some_and(|text| !text.is_empty());
        let says = match content {
            Some(Value::Array(parts)) => parts.iter().any(text),
            other => other.iter().any(text),
        };
        let thinks = reasoning_content.as_ref().is_some_and(|text| !text.is_empty())
            || Meaning::Thinking.names().any(|name| extra.get(name).is_some_and(filled));
        !says && !thinks && tool_calls.is_empty()
    }
}

/// Reads messages for a template. Names of keys that have no effect are added to `unused`.
pub(super) struct Messages<'a> {
    pub template: &'a ChatTemplate,
    pub unused: &'a mut Vec<String>,
}

impl Messages<'_> {
    /// The messages of a list. The error is the reason why it cannot be used.
    pub fn read(&mut self, key: &str, list: &Value) -> Result<Vec<Turn>, String> {
        let list = parsed(list);
        let Value::Array(list) = list.as_ref() else { return Err(format!("{key} is no list")) };
        if list.len() > MESSAGES {
            return Err(format!("{} messages, at most {MESSAGES} are read", list.len()));
        }
        let mut turns: Vec<Turn> = vec![];
        for (n, value) in list.iter().enumerate() {
            let named = |reason| format!("message {}: {reason}", n + 1);
            turns.push(self.message(value).map_err(named)?);
            self.check_name(&turns).map_err(named)?;
        }
        Ok(turns)
    }

    fn message(&mut self, value: &Value) -> Result<Turn, String> {
        let value = parsed(value);
        let Value::Object(object) = value.as_ref() else { return Err(format!("{} is no object", short(&value))) };
        if object.len() > KEYS {
            return Err(format!("{} keys, at most {KEYS} are read", object.len()));
        }
        let role = one(object, Meaning::Role)?.ok_or("it has no role")?;
        let unknown = || format!("the role {} is none of system, user, assistant, tool", short(role));
        let role = role.as_str().and_then(Role::of).ok_or_else(unknown)?;
        let name = match role {
            Role::Named(name) => name,
            Role::Developer if has_word(self.template.source(), "developer") => "developer",
            Role::Developer => "system",
            Role::Caller => "assistant",
        };
        let mut turn = Turn::new(Message { role: name.to_string(), ..Message::default() });
        turn.message.content = one(object, Meaning::Content)?.map(content).transpose()?;
        if role == Role::Caller {
            let called = turn.message.content.take().unwrap_or_default();
            turn.message.tool_calls =
                calls(&called).map_err(|reason| format!("{reason}, but its role says that it is a call"))?;
        }
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            self.key(&mut turn, key, value)?;
        }
        Ok(turn)
    }

    /// Applies a key that has a value.
    fn key(&mut self, turn: &mut Turn, key: &str, value: &Value) -> Result<(), String> {
        match Meaning::of(key) {
            Meaning::Role | Meaning::Content => {}
            Meaning::Thinking => self.thinking(&mut turn.message, key, value)?,
            Meaning::Calls => turn.message.tool_calls.extend(calls(value)?),
            Meaning::Call => turn.message.tool_calls.extend(calls(&json!([value]))?),
            Meaning::Weight => {
                let weight =
                    value.as_f64().map(|weight| weight as f32).filter(|weight| weight.is_finite() && *weight >= 0.0);
                turn.weight *= weight.ok_or_else(|| format!("{key} is {}, not a number of 0 or more", short(value)))?;
            }
            Meaning::Learnt => match value.as_bool().or_else(|| value.as_u64().filter(|n| *n < 2).map(|n| n == 1)) {
                Some(true) if !turn.is_assistant() => {
                    return Err(format!("{key} is true, but only turns of the assistant are learnt"));
                }
                Some(learnt) => turn.weight *= f32::from(u8::from(learnt)),
                None => return Err(format!("{key} is {}, not true or false", short(value))),
            },
            Meaning::Refused(why) if filled(value) => return Err(format!("it has {key}, but {why}")),
            Meaning::Refused(_) => {}
            // A result names the function that was called, which the call says, too.
            Meaning::Shown
                if filled(value) && turn.message.role != "tool" && !has_word(self.template.source(), key) =>
            {
                return Err(not_shown(key));
            }
            Meaning::Shown | Meaning::Link => drop(turn.message.extra.insert(key.to_string(), value.clone())),
            Meaning::Unknown => {
                if !has_word(self.template.source(), key) {
                    self.unused.push(format!("{key} of messages"));
                }
                turn.message.extra.insert(key.to_string(), value.clone());
            }
        }
        Ok(())
    }

    /// Hands thinking over under a name that the template looks at.
    fn thinking(&self, message: &mut Message, key: &str, value: &Value) -> Result<(), String> {
        let Value::String(text) = value else { return Err(format!("{key} is {}, not a text", short(value))) };
        let Some(shown) = Meaning::Thinking.names().find(|name| has_word(self.template.source(), name)) else {
            return if text.is_empty() { Ok(()) } else { Err(not_shown(key)) };
        };
        let before = match shown {
            "reasoning_content" => message.reasoning_content.replace(text.clone()),
            _ => message
                .extra
                .insert(shown.to_string(), value.clone())
                .and_then(|before| before.as_str().map(str::to_string)),
        };
        match before.is_none_or(|before| before == *text) {
            true => Ok(()),
            false => Err(format!("it has two texts of thinking, one of them in {key}")),
        }
    }

    /// Whether the template shows the `name` of the last message. Templates have this word for
    /// names of functions, too, so only renderings tell.
    fn check_name(&self, turns: &[Turn]) -> Result<(), String> {
        let Some(last) =
            turns.last().filter(|turn| turn.message.role != "tool" && turn.message.extra.contains_key("name"))
        else {
            return Ok(());
        };
        let mut messages: Vec<Message> = turns.iter().map(|turn| turn.message.clone()).collect();
        if let Some(message) = messages.last_mut() {
            message.extra.remove("name");
        }
        let options = RenderOptions::default().add_generation_prompt(false).now_unix_s(0);
        let without = self.template.render(&messages, &options);
        messages.pop();
        messages.push(last.message.clone());
        match (without, self.template.render(&messages, &options)) {
            (Ok(without), Ok(with)) if without == with => Err(not_shown("name")),
            _ => Ok(()),
        }
    }
}

/// The value of the only key with a meaning. Another key with this meaning may be null.
fn one(object: &Map<String, Value>, meaning: Meaning) -> Result<Option<&Value>, String> {
    let mut found = meaning.names().filter_map(|key| Some((key, object.get(key)?)));
    let Some((first, value)) = found.next() else { return Ok(None) };
    match found.find(|(_, other)| !other.is_null()) {
        Some((_, other)) if value.is_null() => Ok(Some(other)),
        Some((key, _)) => Err(format!("it has both {first} and {key}")),
        None => Ok(Some(value)),
    }
}

fn not_shown(key: &str) -> String {
    format!("the chat template does not show {key}; write it into content, or leave the key out")
}

/// A text, or parts of text. Parquet fills the keys that a part lacks with null.
fn content(value: &Value) -> Result<Value, String> {
    let part = |part: &Value| match part {
        Value::String(_) => Ok(part.clone()),
        Value::Object(object) => {
            let object: Map<_, _> =
                object.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
            match object.get("type").map_or(Some("text"), Value::as_str) {
                Some("text") if object.get("text").is_some_and(Value::is_string) => Ok(Value::Object(object)),
                _ => Err(format!("the part {} of content is no text, but only text is learnt", short(part))),
            }
        }
        other => Err(format!("the part {} of content is no text", short(other))),
    };
    match value {
        Value::String(_) | Value::Null => Ok(value.clone()),
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => Err(format!("content is {}, not a text", short(other))),
    }
}

/// Calls of functions: a list or a single one, perhaps as JSON text, with or without the frame of
/// OpenAI's form.
fn calls(value: &Value) -> Result<Vec<Value>, String> {
    let value = parsed(value);
    let call = |call: &Value| {
        let call = parsed(call);
        let Value::Object(object) = call.as_ref() else {
            return Err(format!("{} is no call of a function", short(&call)));
        };
        let mut object: Map<_, _> =
            object.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
        match object.get("type").map_or(Some("function"), Value::as_str) {
            Some("function") => {}
            _ => return Err(format!("a call has the type {}, but only functions are called", short(&object["type"]))),
        }
        if let Some(function) = object.get("function") {
            let function = parsed(function).into_owned();
            object.insert("function".to_string(), function);
        } else if object.contains_key("name") {
            let function =
                ["name", "arguments"].into_iter().filter_map(|key| Some((key.to_string(), object.remove(key)?)));
            let function = Value::Object(function.collect());
            object.insert("type".to_string(), "function".into());
            object.insert("function".to_string(), function);
        }
        match object.get("function").is_some_and(|function| function["name"].is_string()) {
            true => Ok(Value::Object(object)),
            false => Err(format!("{} is no call of a function", short(&call))),
        }
    };
    match value.as_ref() {
        Value::Array(list) => list.iter().map(call).collect(),
        other => Ok(vec![call(other)?]),
    }
}

/// The functions that a conversation may call: a list, perhaps as JSON text. `framed` is false for
/// OpenAI's earlier `functions`, which have no frame.
pub(super) fn tools(value: &Value, framed: bool) -> Result<Value, String> {
    let value = parsed(value);
    let Value::Array(list) = value.as_ref() else { return Err(format!("the tools are {}, not a list", short(&value))) };
    let tool = |tool: &Value| {
        let tool = parsed(tool).into_owned();
        match (&tool, tool.get("type").map_or(Some("function"), Value::as_str)) {
            (Value::Object(_), Some("function")) if framed => Ok(tool),
            (Value::Object(_), _) if !framed => Ok(json!({ "type": "function", "function": tool })),
            _ => Err(format!("the tool {} is no function", short(&tool))),
        }
    };
    list.iter().map(tool).collect()
}
