//! JSON as Python's `json.dumps` writes it: models were trained on that spacing.

use std::fmt::{self, Write};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python;
use super::text::{chars, touch};

/// The arguments of `json.dumps`.
#[derive(Default)]
pub(super) struct Style {
    /// Spaces per level; one line where absent.
    pub indent: Option<usize>,
    /// Between items, and between key and value.
    pub separators: Option<[String; 2]>,
    /// Whether everything beyond ASCII is escaped.
    pub ensure_ascii: bool,
    /// Whether keys come in order of their characters.
    pub sort_keys: bool,
}

/// Writes `value`, whose size and depth the caller has bounded.
///
/// # Errors
/// For what JSON has no form for, as in Python.
pub(super) fn dumps(value: &Value, style: &Style) -> Result<String, Error> {
    // A string that grows takes up to three times its length for a moment, so the length is counted
    // first.
    let mut length = Length(0);
    write_value(&mut length, value, style, 0)?;
    let mut out = String::with_capacity(length.0);
    write_value(&mut out, value, style, 0)?;
    Ok(out)
}

/// `json.dumps(value)`, for a value of ours.
pub(super) fn text(value: &serde_json::Value) -> String {
    dumps(&Value::from(Serde(value)), &Style::default()).unwrap_or_default()
}

/// The number of bytes written so far.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn write_value<W: Write>(out: &mut W, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    touch(1);
    match value.kind() {
        ValueKind::None => out.write_str("null")?,
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" })?,
        // Integers of any size are written as they are.
        ValueKind::Number if value.is_integer() => write!(out, "{value}")?,
        ValueKind::Number => out.write_str(&float(value))?,
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default(), style)?,
        ValueKind::Seq | ValueKind::Iterable => {
            let write = |out: &mut W, item: Value| write_value(out, &item, style, depth + 1);
            write_items(out, ['[', ']'], value.try_iter()?, style, depth, write)?;
        }
        ValueKind::Map => {
            let entry = |key: Value| Ok((name(&key)?, value.get_item(&key)?));
            let mut entries = value.try_iter()?.map(entry).collect::<Result<Vec<_>, Error>>()?;
            if style.sort_keys {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let colon = style.separators.as_ref().map_or(": ", |pair| &pair[1]);
            let write = |out: &mut W, (key, value): (String, Value)| {
                write_string(out, &key, style)?;
                out.write_str(colon)?;
                write_value(out, &value, style, depth + 1)
            };
            write_items(out, ['{', '}'], entries.into_iter(), style, depth, write)?;
        }
        kind => return Err(unserializable(kind)),
    }
    Ok(())
}

fn unserializable(kind: ValueKind) -> Error {
    Error::new(ErrorKind::BadSerialization, format!("tojson of a value of type {kind}"))
}

/// A key as `json.dumps` writes it: numbers, booleans and none become text.
fn name(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(key.is_true().to_string()),
        ValueKind::Number if key.is_integer() => Ok(key.to_string()),
        ValueKind::Number => Ok(float(key)),
        kind => Err(unserializable(kind)),
    }
}

/// Floats as Python's `repr`: the shortest digits, an exponent below 1e-4 and from 1e16 on.
fn float(value: &Value) -> String {
    match f64::try_from(value.clone()).unwrap_or(f64::NAN) {
        value if value.is_nan() => "NaN".to_owned(),
        value if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        value => python::float(value),
    }
}

fn write_items<W: Write, T>(
    out: &mut W,
    brackets: [char; 2],
    items: impl Iterator<Item = T>,
    style: &Style,
    depth: usize,
    write: impl Fn(&mut W, T) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut empty = true;
    let comma = style.separators.as_ref().map_or(if style.indent.is_some() { "," } else { ", " }, |pair| &pair[0]);
    let line = |out: &mut W, depth: usize| {
        let Some(indent) = style.indent else { return Ok(()) };
        out.write_char('\n')?;
        (0..indent.saturating_mul(depth)).try_for_each(|_| out.write_char(' '))
    };
    out.write_char(brackets[0])?;
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.write_str(comma)?;
        }
        empty = false;
        line(out, depth + 1)?;
        write(out, item)?;
    }
    if !empty {
        line(out, depth)?;
    }
    Ok(out.write_char(brackets[1])?)
}

fn write_string(out: &mut impl Write, text: &str, style: &Style) -> fmt::Result {
    out.write_char('"')?;
    for c in chars(text) {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            _ if c < ' ' || (style.ensure_ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            _ => out.write_char(c)?,
        }
    }
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dumped(value: serde_json::Value, style: &Style) -> String {
        dumps(&Value::from(Serde(value)), style).unwrap()
    }

    fn plain(value: serde_json::Value) -> String {
        dumped(value, &Style::default())
    }

    #[test]
    fn one_line_has_python_spacing_and_the_given_order() {
        let value = json!({"b": [1, 2.5, null, true], "a": {}, "é<'>": "\u{7f}\u{1}\"\\\n"});
        assert_eq!(plain(value), "{\"b\": [1, 2.5, null, true], \"a\": {}, \"é<'>\": \"\u{7f}\\u0001\\\"\\\\\\n\"}");
    }

    #[test]
    fn a_text_takes_no_more_bytes_than_it_has() {
        let text = plain(json!({"a": ["\"\\".repeat(1000), 1.5], "é": "\u{1}🚀"}));
        assert_eq!(text.capacity(), text.len());
    }

    #[test]
    fn an_indent_breaks_lines_but_not_empty_containers() {
        let style = Style { indent: Some(2), ..Style::default() };
        assert_eq!(
            dumped(json!({"a": [1, []], "b": {}}), &style),
            "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}"
        );
    }

    #[test]
    fn separators_keys_and_ascii_follow_the_arguments() {
        let style = Style {
            separators: Some([",".into(), ":".into()]),
            ensure_ascii: true,
            sort_keys: true,
            ..Style::default()
        };
        assert_eq!(dumped(json!({"b": "é🚀", "a": [1, 2]}), &style), r#"{"a":[1,2],"b":"\u00e9\ud83d\ude80"}"#);
    }

    #[test]
    fn floats_read_like_pythons() {
        let floats = [1.0, -0.0, 0.1, 1e-4, 1e-5, 1.5e-7, 1e15, 1e16, 1.25e22, 123456789.125];
        let texts: Vec<String> = floats.into_iter().map(|float| plain(json!(float))).collect();
        assert_eq!(
            texts,
            [
                "1.0",
                "-0.0",
                "0.1",
                "0.0001",
                "1e-05",
                "1.5e-07",
                "1000000000000000.0",
                "1e+16",
                "1.25e+22",
                "123456789.125"
            ]
        );
        assert_eq!(plain(json!([u64::MAX, i64::MIN])), "[18446744073709551615, -9223372036854775808]");
    }
}
