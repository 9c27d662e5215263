//! Messages in the form that a template shows.
//!
//! Data has contents as text or as parts, and the arguments of calls as an object or as JSON text.
//! Many templates show only one of them, and drop the other without an error. So a conversation
//! with parts, calls or tools is rendered first with marks in their places. The first form whose
//! marks all come out is the form of the prompt. If no form shows a mark, an error names it.

use serde_json::{Map, Value, json};

use super::{ChatError, ChatTemplate, json as python_json};

/// How the messages are handed to the template.
#[derive(Clone, Copy)]
struct Form {
    arguments: Arguments,
    /// Parts of text are joined to one text, by line breaks as in vLLM and llama.cpp.
    joined: bool,
    /// A message with calls and without content gets an empty text.
    blank: bool,
}

/// The arguments of calls, and what the template is to make of them.
#[derive(Clone, Copy, PartialEq)]
enum Arguments {
    /// Objects that the template writes in a notation of its own.
    Own,
    /// What the data has: text that is shown as it is, objects that are shown as JSON.
    Given,
    /// Objects that the template writes as JSON.
    Objects,
    /// JSON text that is shown as it is.
    Texts,
}

/// What must come out of the template.
struct Mark {
    shown: Shown,
    /// The marked thing, for the error.
    what: String,
}

enum Shown {
    Text(String),
    /// The text of a part, in another way than Python prints a list of parts.
    Part(String),
    /// The key and the value of an object, as JSON or in another notation.
    Pair(String, String, Arguments),
}

impl Mark {
    fn is_in(&self, text: &str) -> bool {
        match &self.shown {
            Shown::Text(mark) => text.contains(mark),
            Shown::Part(mark) => {
                let printed = ["'text': ", "[", ", "].iter().any(|before| text.contains(&format!("{before}'{mark}'")));
                text.contains(mark) && !printed
            }
            Shown::Pair(key, value, notation) => {
                let quoted =
                    |quote: char, gap: &str| text.contains(&format!("{quote}{key}{quote}:{gap}{quote}{value}{quote}"));
                let json = quoted('"', " ") || quoted('"', "");
                match notation {
                    // A mapping that is printed as Python prints it is no notation for a model.
                    Arguments::Own => text.contains(key) && text.contains(value) && !json && !quoted('\'', " "),
                    _ => json,
                }
            }
        }
    }
}

/// The conversation `values` in the form that `template` shows.
///
/// # Errors
/// [`ChatError::Unshown`] names a part, a call or a tool that no form shows.
pub(super) fn fitted(template: &ChatTemplate, values: Map<String, Value>) -> Result<Map<String, Value>, ChatError> {
    let messages = || values.get("messages").and_then(Value::as_array).into_iter().flatten();
    let parts = messages().any(|message| message["content"].is_array());
    let calls = messages().any(|message| !calls(message).is_empty());
    let tools = values.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    if !parts && !calls && !tools {
        return Ok(values);
    }
    let arguments: &[Arguments] = if calls {
        &[Arguments::Own, Arguments::Given, Arguments::Objects, Arguments::Texts]
    } else {
        &[Arguments::Given]
    };
    let blanks: &[bool] = if messages().any(is_bare) { &[false, true] } else { &[false] };
    let joins: &[bool] = if parts { &[false, true] } else { &[false] };
    let (mut error, mut unshown): (Option<ChatError>, Option<ChatError>) = (None, None);
    for &arguments in arguments {
        for &joined in joins {
            for &blank in blanks {
                let form = Form { arguments, joined, blank };
                match form.tried(template, &values, blanks.len() > 1) {
                    Ok(formed) => return Ok(formed),
                    Err(limit @ ChatError::Limit { .. }) => return Err(limit),
                    // The last form tells best what is missing: whatever can become text has.
                    Err(missing @ ChatError::Unshown { .. }) => unshown = Some(missing),
                    Err(other) => {
                        error.get_or_insert(other);
                    }
                }
            }
        }
    }
    match (error, unshown) {
        (Some(error @ ChatError::Arguments { .. }), _) | (Some(error), None) => Err(error),
        (_, unshown) => Err(unshown.unwrap_or(ChatError::Unshown { what: "the conversation".into() })),
    }
}

impl Form {
    /// The values in this form, if the template shows all of their marks.
    fn tried(
        self,
        template: &ChatTemplate,
        values: &Map<String, Value>,
        bare: bool,
    ) -> Result<Map<String, Value>, ChatError> {
        let formed = self.applied(values.clone())?;
        let (marked, marks) = self.marked(values.clone());
        let marked = self.applied(marked)?;
        let text = template.render_values(marked.clone())?;
        if let Some(mark) = marks.into_iter().find(|mark| !mark.is_in(&text)) {
            return Err(ChatError::Unshown { what: mark.what });
        }
        // Python prints a missing text as `None`, a word that is in no message.
        if bare && !self.blank {
            let blank = template.render_values(blanked(marked.clone()))?;
            if text.matches("None").count() > blank.matches("None").count() {
                return Err(ChatError::Unshown { what: "a message with calls and without content".into() });
            }
        }
        if let Some(what) = other_part(&formed) {
            // No mark can stand in an image, but the image leaves one of its own.
            if template.render_values(without_other_parts(marked))? == text {
                return Err(ChatError::Unshown { what });
            }
        }
        Ok(formed)
    }

    fn applied(self, mut values: Map<String, Value>) -> Result<Map<String, Value>, ChatError> {
        if self.joined {
            if let Some(what) = other_part(&values) {
                return Err(ChatError::Unshown { what });
            }
            each_message(&mut values, |_, message| {
                let Some(parts) = message.get("content").and_then(Value::as_array) else { return };
                let texts: Vec<&str> = parts.iter().filter_map(text_of).collect();
                let text = texts.join("\n");
                message.insert("content".into(), text.into());
            });
        }
        let mut error = None;
        each_call(&mut values, |call| match (self.arguments, call.arguments.take()) {
            (Arguments::Own | Arguments::Objects, Value::String(text)) => match object(&text) {
                Ok(object) => *call.arguments = object,
                Err(reason) => error = Some(ChatError::Arguments { name: call.name.clone(), reason }),
            },
            (Arguments::Texts, object @ Value::Object(_)) => *call.arguments = python_json::text(&object).into(),
            (_, same) => *call.arguments = same,
        });
        error.map_or(Ok(if self.blank { blanked(values) } else { values }), Err)
    }

    /// The values with marks in place of texts of parts, and of names and arguments of calls and
    /// tools.
    fn marked(self, mut values: Map<String, Value>) -> (Map<String, Value>, Vec<Mark>) {
        let (mut marks, mut count) = (vec![], 0);
        let mut next = || {
            count += 1;
            format!("wq{count}x")
        };
        each_message(&mut values, |n, message| {
            let Some(parts) = message.get_mut("content").and_then(Value::as_array_mut) else { return };
            for (at, part) in parts.iter_mut().enumerate() {
                let text =
                    if part.is_string() { Some(part) } else { part.get_mut("text").filter(|text| text.is_string()) };
                if let Some(text) = text {
                    let (mark, what) = (next(), format!("part {} of message {n}, a text", at + 1));
                    *text = mark.clone().into();
                    marks.push(Mark { shown: Shown::Part(mark), what });
                }
            }
        });
        each_call(&mut values, |call| {
            let named = format!("the call of {} in message {}", call.name, call.message);
            if let Some(name) = call.named {
                let mark = next();
                *name = mark.clone().into();
                marks.push(Mark { shown: Shown::Text(mark), what: named.clone() });
            }
            // A call without arguments shows none.
            if is_empty(call.arguments) {
                return;
            }
            let (key, value) = (next(), next());
            let marked = json!({ key.as_str(): value.as_str() });
            let text = python_json::text(&marked);
            let given = call.arguments.is_object();
            match call.arguments {
                Value::Object(_) => *call.arguments = marked,
                Value::String(_) => *call.arguments = text.clone().into(),
                _ => return,
            }
            let shown = match self.arguments {
                Arguments::Own | Arguments::Objects => Shown::Pair(key, value, self.arguments),
                Arguments::Given if given => Shown::Pair(key, value, self.arguments),
                Arguments::Given | Arguments::Texts => Shown::Text(text),
            };
            marks.push(Mark { shown, what: format!("the arguments of {named}") });
        });
        for tool in values.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
            let tool = if tool["function"].is_object() { &mut tool["function"] } else { tool };
            if let Some(name) = tool.get_mut("name").filter(|name| name.is_string()) {
                let (mark, what) = (next(), format!("the tool {}", name.as_str().unwrap_or_default()));
                *name = mark.clone().into();
                marks.push(Mark { shown: Shown::Text(mark), what });
            }
        }
        (values, marks)
    }
}

/// The object that a JSON text stands for; none stands for no arguments.
fn object(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("the text is another kind of JSON".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether arguments are an object without entries.
fn is_empty(arguments: &Value) -> bool {
    let empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    empty(arguments) || arguments.as_str().is_some_and(|text| object(text).is_ok_and(|object| empty(&object)))
}

/// The text of a part: of itself, or under `text`.
fn text_of(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text")?.as_str())
}

/// The calls of a message.
fn calls(message: &Value) -> &[Value] {
    message.get("tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a message has calls and no content.
fn is_bare(message: &Value) -> bool {
    !calls(message).is_empty() && message["content"].is_null()
}

fn blanked(mut values: Map<String, Value>) -> Map<String, Value> {
    for message in values.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        if is_bare(message) {
            message["content"] = "".into();
        }
    }
    values
}

/// The first part that is no text.
fn other_part(values: &Map<String, Value>) -> Option<String> {
    let messages = values.get("messages")?.as_array()?;
    messages.iter().enumerate().find_map(|(n, message)| {
        let part = message.get("content")?.as_array()?.iter().find(|part| text_of(part).is_none())?;
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("unknown");
        Some(format!("a part of type {kind} in message {}", n + 1))
    })
}

fn without_other_parts(mut values: Map<String, Value>) -> Map<String, Value> {
    each_message(&mut values, |_, message| {
        if let Some(parts) = message.get_mut("content").and_then(Value::as_array_mut) {
            parts.retain(|part| text_of(part).is_some());
        }
    });
    values
}

/// Visits the messages with their numbers from 1.
fn each_message(values: &mut Map<String, Value>, mut visit: impl FnMut(usize, &mut Map<String, Value>)) {
    let messages = values.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten();
    messages
        .enumerate()
        .filter_map(|(n, message)| Some((n + 1, message.as_object_mut()?)))
        .for_each(|(n, message)| visit(n, message));
}

/// A call within a message.
struct Call<'v> {
    /// The number of its message, from 1.
    message: usize,
    name: String,
    named: Option<&'v mut Value>,
    arguments: &'v mut Value,
}

/// Visits the calls that have arguments, which stand under `function` or beside the name.
fn each_call(values: &mut Map<String, Value>, mut visit: impl FnMut(Call)) {
    each_message(values, |n, message| {
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let call = if call["function"].is_object() { &mut call["function"] } else { call };
            let Some(call) = call.as_object_mut() else { continue };
            let name = call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let (mut named, mut arguments) = (None, None);
            for (key, value) in call.iter_mut() {
                match key.as_str() {
                    "name" if value.is_string() => named = Some(value),
                    "arguments" => arguments = Some(value),
                    _ => {}
                }
            }
            visit(Call { message: n, name, named, arguments: arguments.unwrap_or(&mut Value::Null) });
        }
    });
}
