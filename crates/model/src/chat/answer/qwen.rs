//! What stands between `<tool_call>` and `</tool_call>`: JSON, or the tags of Qwen3-Coder.

use super::event::ToolCall;
use serde_json::{Map, Value};

/// Reads a call.
pub(super) fn call(body: &str, tools: Option<&Value>) -> Result<ToolCall, String> {
    let body = body.trim();
    match body.strip_prefix("<function=") {
        Some(rest) => tagged(rest, tools),
        None => json(body),
    }
}

/// `{"name": .., "arguments": {..}}`; arguments may be missing, or JSON within a string.
fn json(body: &str) -> Result<ToolCall, String> {
    let value: Value = serde_json::from_str(body).map_err(|error| format!("it is no JSON: {error}"))?;
    let Value::Object(mut call) = value else { return Err("it is no JSON object".to_string()) };
    let name = match call.remove("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(_) => return Err("its name is no text".to_string()),
        None => return Err("it has no name".to_string()),
    };
    let arguments = match call.remove("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) => serde_json::from_str(&text)
            .map_err(|error| format!("its arguments are text that is no JSON object: {error}"))?,
        Some(_) => return Err("its arguments are no JSON object".to_string()),
    };
    Ok(ToolCall { name, arguments })
}

/// `NAME>`, then `<parameter=KEY>VALUE</parameter>` for each, then `</function>`.
fn tagged(text: &str, tools: Option<&Value>) -> Result<ToolCall, String> {
    let (name, mut rest) = text.split_once('>').ok_or("<function= has no >")?;
    let name = name.trim();
    if name.is_empty() {
        return Err("it has no name".to_string());
    }
    let mut arguments = Map::new();
    loop {
        rest = rest.trim_start();
        let Some(parameter) = rest.strip_prefix("<parameter=") else { break };
        let (key, after) = parameter.split_once('>').ok_or("<parameter= has no >")?;
        let (value, after) =
            after.split_once("</parameter>").ok_or_else(|| format!("parameter {key} has no </parameter>"))?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim().to_owned(), typed(value, tools.and_then(|tools| kind(tools, name, key.trim()))));
        rest = after;
    }
    match rest.strip_prefix("</function>").unwrap_or(rest).trim() {
        "" => Ok(ToolCall { name: name.to_owned(), arguments }),
        other => Err(format!("\"{}\" is no parameter", other.chars().take(20).collect::<String>().escape_debug())),
    }
}

/// A parameter's JSON type, from the tools' schemas.
fn kind<'a>(tools: &'a Value, name: &str, key: &str) -> Option<&'a str> {
    let functions = tools.as_array()?.iter().map(|tool| tool.get("function").unwrap_or(tool));
    let mut ours = functions.filter(|function| function["name"] == name);
    ours.find_map(|function| function["parameters"]["properties"][key]["type"].as_str())
}

/// Text stays text where the schema says so; else what reads as JSON is that.
fn typed(value: &str, kind: Option<&str>) -> Value {
    let text = || Value::String(value.to_owned());
    if kind == Some("string") { text() } else { serde_json::from_str(value.trim()).unwrap_or_else(|_| text()) }
}
