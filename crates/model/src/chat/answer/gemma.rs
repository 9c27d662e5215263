//! What stands between Gemma 4's `<|tool_call>` and `<tool_call|>`: `call:name{key:value,..}`.
//!
//! Values are JSON's, but for keys without quotation marks and strings between `<|"|>`, in which
//! nothing is escaped.

use super::event::ToolCall;
use super::format::GEMMA4_QUOTE;
use serde_json::{Map, Value};

/// Nesting of values at most.
const DEPTH: usize = 64;

/// Reads a call.
pub(super) fn call(body: &str) -> Result<ToolCall, String> {
    let text = body.trim().strip_prefix("call:").ok_or("it does not begin with call:")?;
    let at = text.find('{').ok_or("it has no {")?;
    let name = text[..at].trim();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it has no name".to_string());
    }
    let mut reader = Reader { rest: &text[at..] };
    let arguments = reader.object(0)?;
    match reader.rest.trim() {
        "" => Ok(ToolCall { name: name.to_owned(), arguments }),
        _ => Err(reader.unexpected("the end")),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.trim_start().chars().take(20).collect();
        if found.is_empty() {
            format!("it ends where {wanted} should be")
        } else {
            format!("\"{}\" stands where {wanted} should be", found.escape_debug())
        }
    }

    fn quoted(&mut self) -> Result<Option<&'a str>, String> {
        if !self.takes(GEMMA4_QUOTE) {
            return Ok(None);
        }
        let (text, rest) = self.rest.split_once(GEMMA4_QUOTE).ok_or("a string has no end")?;
        self.rest = rest;
        Ok(Some(text))
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let mut map = Map::new();
        if !self.takes("{") {
            return Err(self.unexpected("{"));
        }
        if self.takes("}") {
            return Ok(map);
        }
        loop {
            let key = match self.quoted()? {
                Some(key) if self.takes(":") => key,
                Some(_) => return Err(self.unexpected(":")),
                None => {
                    let end =
                        self.rest.find([':', ',', '{', '}', '[', ']']).filter(|&end| self.rest[end..].starts_with(':'));
                    let (key, rest) = end
                        .map(|end| (&self.rest[..end], &self.rest[end + 1..]))
                        .ok_or_else(|| self.unexpected("a key and :"))?;
                    self.rest = rest;
                    key.trim().trim_matches('"')
                }
            };
            let value = self.value(depth + 1)?;
            map.insert(key.to_owned(), value);
            if self.takes("}") {
                return Ok(map);
            }
            if !self.takes(",") {
                return Err(self.unexpected(", or }"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = vec![];
        if self.takes("]") {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.takes("]") {
                return Ok(Value::Array(items));
            }
            if !self.takes(",") {
                return Err(self.unexpected(", or ]"));
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(format!("its values are nested deeper than {DEPTH}"));
        }
        if let Some(text) = self.quoted()? {
            return Ok(text.into());
        }
        if self.takes("[") {
            return self.array(depth);
        }
        if self.rest.trim_start().starts_with('{') {
            return Ok(Value::Object(self.object(depth)?));
        }
        // A number, a string in JSON's own quotation marks, true, false or null.
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.rest = &self.rest[values.byte_offset()..];
                Ok(value)
            }
            _ => Err(self.unexpected("a value")),
        }
    }
}
