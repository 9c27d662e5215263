//! JSON as Python's `json.dumps` writes it: models were trained on that spacing.

use std::fmt::{self, Write};

use serde_json::{Number, Value};

use super::python;

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

pub(super) fn dumps(value: &Value, style: &Style) -> String {
    // A string that grows takes up to three times its length for a moment, so the length is counted
    // first. Neither writing fails.
    let mut length = Length(0);
    let _ = write_value(&mut length, value, style, 0);
    let mut out = String::with_capacity(length.0);
    let _ = write_value(&mut out, value, style, 0);
    out
}

/// The number of bytes written so far.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn write_value<W: Write>(out: &mut W, value: &Value, style: &Style, depth: usize) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(on) => out.write_str(if *on { "true" } else { "false" }),
        Value::Number(number) => out.write_str(&number_text(number)),
        Value::String(text) => write_string(out, text, style),
        Value::Array(items) => {
            let write = |out: &mut W, item: &Value| write_value(out, item, style, depth + 1);
            write_items(out, ['[', ']'], items.iter(), style, depth, write)
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            if style.sort_keys {
                entries.sort_by_key(|entry| entry.0);
            }
            let colon = style.separators.as_ref().map_or(": ", |pair| &pair[1]);
            let write = |out: &mut W, (key, value): (&String, &Value)| {
                write_string(out, key, style)?;
                out.write_str(colon)?;
                write_value(out, value, style, depth + 1)
            };
            write_items(out, ['{', '}'], entries.into_iter(), style, depth, write)
        }
    }
}

fn write_items<W: Write, T>(
    out: &mut W,
    brackets: [char; 2],
    items: impl ExactSizeIterator<Item = T>,
    style: &Style,
    depth: usize,
    write: impl Fn(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    let empty = items.len() == 0;
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
        line(out, depth + 1)?;
        write(out, item)?;
    }
    if !empty {
        line(out, depth)?;
    }
    out.write_char(brackets[1])
}

fn write_string(out: &mut impl Write, text: &str, style: &Style) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
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

/// Integers as they are; floats as Python's `repr`: the shortest digits, an exponent below 1e-4 and
/// from 1e16 on.
fn number_text(number: &Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    python::float(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(value: Value) -> String {
        dumps(&value, &Style::default())
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
        assert_eq!(dumps(&json!({"a": [1, []], "b": {}}), &style), "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}");
    }

    #[test]
    fn separators_keys_and_ascii_follow_the_arguments() {
        let style = Style { separators: Some([",".into(), ":".into()]), ensure_ascii: true, sort_keys: true, ..Style::default() };
        assert_eq!(dumps(&json!({"b": "é🚀", "a": [1, 2]}), &style), r#"{"a":[1,2],"b":"\u00e9\ud83d\ude80"}"#);
    }

    #[test]
    fn floats_read_like_pythons() {
        let floats = [1.0, -0.0, 0.1, 1e-4, 1e-5, 1.5e-7, 1e15, 1e16, 1.25e22, 123456789.125];
        let texts: Vec<String> = floats.into_iter().map(|float| plain(json!(float))).collect();
        assert_eq!(texts, ["1.0", "-0.0", "0.1", "0.0001", "1e-05", "1.5e-07", "1000000000000000.0", "1e+16", "1.25e+22", "123456789.125"]);
        assert_eq!(plain(json!([u64::MAX, i64::MIN])), "[18446744073709551615, -9223372036854775808]");
    }
}
