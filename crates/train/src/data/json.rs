//! Values of JSON in a line.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// The object of a line.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes.trim_ascii_end()).map_err(|error| reason(&error))? {
        Value::Object(object) => Ok(object),
        other => Err(format!("{} is no object", short(&other))),
    }
}

/// Why a line is no JSON. The caller knows the number of the line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    match error.column() {
        0 => format!("no JSON: {what}"),
        column => format!("no JSON: {what} at column {column}"),
    }
}

/// A structure that stands as JSON in a text, as tables keep it, is taken out of the text.
pub(super) fn parsed(value: &Value) -> Cow<'_, Value> {
    let text = value.as_str().filter(|text| text.trim_start().starts_with(['[', '{']));
    let structure = text.and_then(|text| serde_json::from_str(text).ok());
    structure.map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Whether a value says something: not null, false, or empty.
pub(super) fn filled(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// A value for a message of an error.
pub(super) fn short(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}
