//! Jinja's filters where the engine has none or others.

use minijinja::value::{Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Error, ErrorKind, Value, filters};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::python;
use super::refusal::invalid;
use super::text::{Side, chars, lines, padded, read, strip, title, touch};

/// `str(value)`.
fn written(value: Value) -> String {
    python::text(value).to_string()
}

/// `str(value)`, and text as it is.
pub(super) fn string(value: Value) -> Value {
    match python::text(value) {
        text if text.kind() == ValueKind::String => text,
        value => Value::from(value.to_string()),
    }
}

/// Takes white space, or the characters of `of`, from both ends.
pub(super) fn trim(text: StringInput, of: Option<String>, kwargs: Kwargs) -> Result<Value, Error> {
    let of = of.map_or_else(|| kwargs.get::<Option<String>>("chars"), |of| Ok(Some(of)))?;
    kwargs.assert_all_used()?;
    Ok(text.preserve_safety(strip(text.as_str(), Side::Both, of.as_deref()).to_owned()))
}

/// Jinja's `center`.
pub(super) fn center(text: String, width: Option<i64>, kwargs: Kwargs) -> Result<String, Error> {
    let width = width.map_or_else(|| kwargs.get::<Option<i64>>("width"), |width| Ok(Some(width)))?;
    kwargs.assert_all_used()?;
    Ok(padded(&text, width.unwrap_or(80), ' ', Side::Both))
}

/// The number of elements. An undefined value counts as an empty text.
pub(super) fn length(value: &Value) -> Result<usize, Error> {
    match value.as_str() {
        Some(text) => Ok(chars(text).count()),
        None if value.is_undefined() => Ok(0),
        None => filters::length(value),
    }
}

/// The first element, or the first character.
pub(super) fn first(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::first(value) }
}

/// The last element, or the last character.
pub(super) fn last(value: Value) -> Result<Value, Error> {
    if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::last(value) }
}

/// A capital, then small letters.
pub(super) fn capitalize(text: Value) -> String {
    let text = written(text);
    let first = text.chars().next().map_or(0, char::len_utf8);
    title(&text[..first]) + &read(&text[first..]).to_lowercase()
}

/// The number of words, as `\w+` of Python's `re` finds them.
pub(super) fn wordcount(text: Value) -> usize {
    let (mut count, mut within) = (0, false);
    for c in chars(&written(text)) {
        let word = c == '_' || is_alphanumeric(c);
        count += usize::from(word && !within);
        within = word;
    }
    count
}

/// `str.isalnum` of one character. Rust counts marks as letters, which Python does not.
fn is_alphanumeric(c: char) -> bool {
    matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

/// Jinja's `urlencode`: text keeps its slashes; a mapping, or a list of pairs, becomes a query.
pub(super) fn urlencode(value: &Value) -> Result<String, Error> {
    let pair = |key: Value, value: Value| in_query(key) + "=" + &in_query(value);
    let pairs: Vec<String> = match value.kind() {
        ValueKind::Undefined => vec![],
        ValueKind::Map => {
            value.try_iter()?.map(|key| Ok(pair(key.clone(), value.get_item(&key)?))).collect::<Result<_, Error>>()?
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let of = |item: Value| match item.len() {
                Some(2) => Ok(pair(item.get_item_by_index(0)?, item.get_item_by_index(1)?)),
                _ => Err(invalid("urlencode of a list whose elements are no pairs")),
            };
            value.try_iter()?.map(of).collect::<Result<_, Error>>()?
        }
        _ => return Ok(percent_encoded(&written(value.clone()), "/")),
    };
    Ok(pairs.join("&"))
}

fn in_query(value: Value) -> String {
    percent_encoded(&written(value), "").replace("%20", "+")
}

fn percent_encoded(text: &str, safe: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in chars(text) {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '~') || safe.contains(c) {
            out.push(c);
        } else {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")));
        }
    }
    out
}

/// `replace`, with an optional largest number of replacements.
pub(super) fn replace(text: Value, from: &str, to: &str, count: Option<i64>, kwargs: Kwargs) -> Result<String, Error> {
    let count = count.map_or_else(|| kwargs.get::<Option<i64>>("count"), |count| Ok(Some(count)))?;
    kwargs.assert_all_used()?;
    // A negative number replaces every match, as in Python.
    let count = count.and_then(|count| usize::try_from(count).ok());
    let text = written(text);
    touch(text.len());
    Ok(count.map_or_else(|| text.replace(from, to), |count| text.replacen(from, to, count)))
}

/// `round`, whose methods `ceil` and `floor` make a float of every number.
pub(super) fn round(
    value: Value,
    precision: Option<i32>,
    method: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let named: Option<&str> = kwargs.get("method")?;
    let float = matches!(method.or(named), Some("ceil" | "floor"));
    let rounded = filters::round(value, precision, method, kwargs)?;
    if float { f64::try_from(rounded).map(Value::from) } else { Ok(rounded) }
}

/// Markup as Python writes it.
pub(super) fn escape(value: Value) -> Value {
    if value.is_safe() {
        return value;
    }
    let mut out = String::new();
    for c in chars(&value.to_string()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    Value::from_safe_string(out)
}

/// Text as Python's `float` reads it.
fn parsed(text: &str) -> Option<f64> {
    let text = read(text).trim();
    let around = |(at, _): (usize, &str)| {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        digit(text[..at].chars().next_back()) && digit(text[at + 1..].chars().next())
    };
    text.match_indices('_').all(around).then(|| text.replace('_', "").parse().ok()).flatten()
}

/// Text as Python's `int` reads it in `base`: 2 to 36, or 0 for the base that a prefix names.
fn parsed_int(text: &str, base: u32) -> Option<i128> {
    let text = read(text).trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let named =
        digits.get(..2).and_then(|start| prefixes.into_iter().find(|(name, _)| start.eq_ignore_ascii_case(name)));
    let (digits, base) = match named {
        Some((_, named)) if base == named || base == 0 => {
            (digits[2..].strip_prefix('_').unwrap_or(&digits[2..]), named)
        }
        // Without a prefix, a leading zero could mean another base.
        None if base == 0 && (!digits.starts_with('0') || digits.bytes().all(|c| matches!(c, b'0' | b'_'))) => {
            (digits, 10)
        }
        _ => (digits, base),
    };
    if !(2..=36).contains(&base)
        || digits.starts_with(['_', '-', '+'])
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    i128::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), base).ok()
}

fn defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        Err(Error::new(ErrorKind::UndefinedError, "a number of an undefined value"))
    } else {
        Ok(())
    }
}

/// Jinja's `int`.
pub(super) fn int(value: &Value, default: Option<Value>, base: Option<u32>, kwargs: Kwargs) -> Result<Value, Error> {
    let named: Option<Value> = kwargs.get("default")?;
    let base = base.map_or_else(|| kwargs.get::<Option<u32>>("base"), |base| Ok(Some(base)))?.unwrap_or(10);
    kwargs.assert_all_used()?;
    defined(value)?;
    let small = |n: i128| i64::try_from(n).map_or_else(|_| Value::from(n), Value::from);
    let text = value.as_str();
    if let Some(whole) = text.and_then(|text| parsed_int(text, base)) {
        return Ok(small(whole));
    }
    if value.is_integer() {
        return Ok(value.clone());
    }
    let number = match value.kind() {
        ValueKind::Bool => return Ok(Value::from(i64::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => text.and_then(parsed),
    };
    match number.filter(|number| number.is_finite()) {
        Some(number) if number.abs() >= 1e38 => Err(invalid("an integer of more than 38 digits")),
        Some(number) => Ok(small(number as i128)),
        None => Ok(default.or(named).unwrap_or_else(|| Value::from(0))),
    }
}

/// Jinja's `float`.
pub(super) fn float(value: &Value, default: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let named: Option<Value> = kwargs.get("default")?;
    kwargs.assert_all_used()?;
    defined(value)?;
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => value.as_str().and_then(parsed),
    };
    Ok(number.map_or_else(|| default.or(named).unwrap_or_else(|| Value::from(0.0)), Value::from))
}

/// Jinja's `indent`.
pub(super) fn indent(
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let width = width.map_or_else(|| kwargs.get::<Option<Value>>("width"), |width| Ok(Some(width)))?;
    let first = first.map_or_else(|| kwargs.get::<Option<bool>>("first"), |on| Ok(Some(on)))?.unwrap_or(false);
    let blank = blank.map_or_else(|| kwargs.get::<Option<bool>>("blank"), |on| Ok(Some(on)))?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let text = value.as_str().ok_or_else(|| invalid(format!("indent of a value of type {}", value.kind())))?;
    let before = match width {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(i64::try_from(width)?).unwrap_or(0)),
        },
    };
    // The line break that Jinja appends keeps the last one of the text.
    let text = format!("{text}\n");
    let mut out = String::new();
    for (n, line) in lines(&text, false).into_iter().enumerate() {
        out.push_str(if n > 0 { "\n" } else { "" });
        if (n == 0 && first) || (n > 0 && (blank || !line.is_empty())) {
            out.push_str(&before);
        }
        out.push_str(line);
    }
    Ok(out)
}

/// The arguments of `truncate` in order, then those by name.
type Truncate = (Option<i64>, Option<bool>, Option<String>, Option<i64>, Kwargs);

/// Jinja's `truncate`.
pub(super) fn truncate(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let (length, words, end, leeway, kwargs): Truncate = from_args(&args.into_values())?;
    let length = length.map_or_else(|| kwargs.get::<Option<i64>>("length"), |n| Ok(Some(n)))?.unwrap_or(255);
    let words = words.map_or_else(|| kwargs.get::<Option<bool>>("killwords"), |on| Ok(Some(on)))?.unwrap_or(false);
    let end = end
        .map_or_else(|| kwargs.get::<Option<String>>("end"), |end| Ok(Some(end)))?
        .unwrap_or_else(|| "...".to_owned());
    let leeway = leeway.map_or_else(|| kwargs.get::<Option<i64>>("leeway"), |n| Ok(Some(n)))?.unwrap_or(5);
    kwargs.assert_all_used()?;
    let room = length - end.chars().count() as i64;
    let Some(text) = value.as_str() else {
        let empty = value.is_undefined();
        return if empty {
            Ok(value.clone())
        } else {
            Err(invalid(format!("truncate of a value of type {}", value.kind())))
        };
    };
    let Some(room) = usize::try_from(room).ok().filter(|_| leeway >= 0) else {
        return Err(invalid("truncate to less than its end"));
    };
    if chars(text).count() as i64 <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let cut = &read(text)[..text.char_indices().nth(room).map_or(text.len(), |(at, _)| at)];
    let kept = if words { cut } else { cut.rsplit_once(' ').map_or(cut, |(before, _)| before) };
    Ok(format!("{kept}{end}").into())
}
