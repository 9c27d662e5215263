//! Python's methods of strings, and Jinja's filters, where the engine has none or others.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

use super::{printf, python};

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.into())
}

/// Filters that differ from the engine's.
pub(super) fn add_filters(environment: &mut Environment) {
    environment.add_filter("string", |value: Value| match python::text(value) {
        text if text.kind() == ValueKind::String => text,
        value => Value::from(value.to_string()),
    });
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("indent", indent);
    environment.add_filter("truncate", truncate);
    environment.add_filter("center", |text: String, width: Option<i64>, kwargs: Kwargs| {
        let width = width.map_or_else(|| kwargs.get::<Option<i64>>("width"), |width| Ok(Some(width)))?;
        kwargs.assert_all_used()?;
        Ok::<_, Error>(padded(&text, width.unwrap_or(80), ' ', Side::Both))
    });
    // An undefined value counts as an empty text.
    for name in ["length", "count"] {
        environment.add_filter(name, |value: &Value| if value.is_undefined() { Ok(0) } else { filters::length(value) });
    }
    environment.add_filter("format", printf::filter);
    environment.add_filter("replace", replace);
    environment.add_filter("round", round);
    environment.add_filter("capitalize", |text: Value| {
        let text = written(text);
        let first = text.chars().next().map_or(0, char::len_utf8);
        title(&text[..first]) + &text[first..].to_lowercase()
    });
    for name in ["escape", "e"] {
        environment.add_filter(name, escape);
    }
    environment.add_filter("first", |value: &Value| if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::first(value) });
    environment.add_filter("last", |value: Value| if value.is_undefined() { Ok(Value::UNDEFINED) } else { filters::last(value) });
}

/// `str(value)`.
fn written(value: Value) -> String {
    python::text(value).to_string()
}

/// `replace`, which may name how many places.
fn replace(text: Value, from: &str, to: &str, count: Option<i64>, kwargs: Kwargs) -> Result<String, Error> {
    let count = count.map_or_else(|| kwargs.get::<Option<i64>>("count"), |count| Ok(Some(count)))?;
    kwargs.assert_all_used()?;
    // Every place for a negative number, as in Python.
    let count = count.and_then(|count| usize::try_from(count).ok());
    let text = written(text);
    Ok(count.map_or_else(|| text.replace(from, to), |count| text.replacen(from, to, count)))
}

/// `round`, whose methods `ceil` and `floor` make a float of every number.
fn round(value: Value, precision: Option<i32>, method: Option<&str>, kwargs: Kwargs) -> Result<Value, Error> {
    let named: Option<&str> = kwargs.get("method")?;
    let float = matches!(method.or(named), Some("ceil" | "floor"));
    let rounded = filters::round(value, precision, method, kwargs)?;
    if float { f64::try_from(rounded).map(Value::from) } else { Ok(rounded) }
}

/// Markup as Python writes it.
fn escape(value: Value) -> Value {
    if value.is_safe() {
        return value;
    }
    let mut out = String::new();
    for c in value.to_string().chars() {
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

/// Python's methods: ours, else those of minijinja-contrib.
pub(super) fn method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = value.as_str().map_or(Ok(None), |text| of_text(text, method, args))?;
    own.map_or_else(|| minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args), Ok)
}

fn of_text(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            text.strip_prefix(prefix).unwrap_or(text).into()
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            text.strip_suffix(suffix).unwrap_or(text).into()
        }
        "split" | "rsplit" => split(text, method == "rsplit", args)?,
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (cut, last) = if method == "partition" { (text.split_once(separator), false) } else { (text.rsplit_once(separator), true) };
            let parts = match cut {
                _ if separator.is_empty() => return Err(invalid("empty separator")),
                Some((before, after)) => [before, separator, after],
                None if last => ["", "", text],
                None => [text, "", ""],
            };
            Value::from(minijinja::value::Tuple::new(parts.into_iter().map(Value::from).collect()))
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (i64, Option<&str>) = from_args(args)?;
            let mut fill = fill.unwrap_or(" ").chars();
            let (Some(c), None) = (fill.next(), fill.next()) else { return Err(invalid("the fill is not one character")) };
            let side = match method {
                "ljust" => Side::Right,
                "rjust" => Side::Left,
                _ => Side::Both,
            };
            padded(text, width, c, side).into()
        }
        "zfill" => {
            let (width,): (i64,) = from_args(args)?;
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let sign = &text[..text.len() - digits.len()];
            format!("{sign}{}", padded(digits, width - sign.len() as i64, '0', Side::Left)).into()
        }
        "title" => {
            let () = from_args(args)?;
            title(text).into()
        }
        _ => return Ok(None),
    }))
}

/// Where padding goes.
enum Side {
    Left,
    Right,
    Both,
}

/// `text` with at least `width` characters. An odd space goes to the side where Python puts it.
fn padded(text: &str, width: i64, fill: char, side: Side) -> String {
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    let left = match side {
        Side::Left => missing,
        Side::Right => 0,
        Side::Both => missing / 2 + (missing & width & 1),
    };
    let fill = |count: usize| std::iter::repeat_n(fill, count);
    fill(left).chain(text.chars()).chain(fill(missing - left)).collect()
}

/// `str.title`: a letter behind another letter is small, every other letter is a capital.
fn title(text: &str) -> String {
    let cased = |c: char| c.is_lowercase() || c.is_uppercase();
    let (mut out, mut within) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if within {
            out.extend(c.to_lowercase());
        } else {
            // The capital of some letters is two letters, of which only the first is large.
            let mut capital = c.to_uppercase();
            out.extend(capital.next());
            out.extend(capital.flat_map(char::to_lowercase));
        }
        within = cased(c);
    }
    out
}

/// `str.split` and `str.rsplit`.
fn split(text: &str, from_end: bool, args: &[Value]) -> Result<Value, Error> {
    let (separator, most, kwargs): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = separator.map_or_else(|| kwargs.get::<Option<Value>>("sep"), |value| Ok(Some(value)))?;
    let most = most.map_or_else(|| kwargs.get::<Option<i64>>("maxsplit"), |most| Ok(Some(most)))?;
    kwargs.assert_all_used()?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX - 1);
    let separator = separator.filter(|value| !value.is_none());
    let parts: Vec<&str> = match separator.as_ref().map(|value| value.as_str().ok_or_else(|| invalid("the separator is no text"))) {
        Some(separator) => {
            let separator = separator?;
            if separator.is_empty() {
                return Err(invalid("empty separator"));
            }
            if from_end { reversed(text.rsplitn(most + 1, separator).collect()) } else { text.splitn(most + 1, separator).collect() }
        }
        None => words(text, most, from_end),
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

fn reversed(mut parts: Vec<&str>) -> Vec<&str> {
    parts.reverse();
    parts
}

/// The words between white space; the rest after `most` cuts keeps its own white space.
fn words(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let trim: fn(&str) -> &str = if from_end { str::trim_end } else { str::trim_start };
    let (mut parts, mut rest) = (vec![], trim(text));
    while !rest.is_empty() {
        let cut = if from_end {
            rest.rfind(char::is_whitespace).map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8))
        } else {
            rest.find(char::is_whitespace)
        };
        let Some(at) = cut.filter(|_| parts.len() < most) else {
            parts.push(rest);
            break;
        };
        let (word, others) = if from_end { (&rest[at..], &rest[..at]) } else { (&rest[..at], &rest[at..]) };
        parts.push(word);
        rest = trim(others);
    }
    if from_end { reversed(parts) } else { parts }
}

/// Text as Python's `float` reads it.
fn parsed(text: &str) -> Option<f64> {
    let text = text.trim();
    let around = |(at, _): (usize, &str)| {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        digit(text[..at].chars().next_back()) && digit(text[at + 1..].chars().next())
    };
    text.match_indices('_').all(around).then(|| text.replace('_', "").parse().ok()).flatten()
}

/// Text as Python's `int` reads it in `base`: 2 to 36, or 0 for the base that a prefix names.
fn parsed_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let named = digits.get(..2).and_then(|start| prefixes.into_iter().find(|(name, _)| start.eq_ignore_ascii_case(name)));
    let (digits, base) = match named {
        Some((_, named)) if base == named || base == 0 => (digits[2..].strip_prefix('_').unwrap_or(&digits[2..]), named),
        // Without a prefix, a leading zero could mean another base.
        None if base == 0 && (!digits.starts_with('0') || digits.bytes().all(|c| matches!(c, b'0' | b'_'))) => (digits, 10),
        _ => (digits, base),
    };
    if !(2..=36).contains(&base) || digits.starts_with(['_', '-', '+']) || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    i128::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), base).ok()
}

fn defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() { Err(Error::new(ErrorKind::UndefinedError, "a number of an undefined value")) } else { Ok(()) }
}

fn int(value: &Value, default: Option<Value>, base: Option<u32>, kwargs: Kwargs) -> Result<Value, Error> {
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

fn float(value: &Value, default: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
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

/// `str.splitlines`: the lines without their ends.
fn lines(text: &str) -> Vec<&str> {
    let (mut out, mut rest) = (vec![], text);
    let ends = |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while let Some(at) = rest.find(ends) {
        let end = if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        out.push(&rest[..at]);
        rest = &rest[at + end..];
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    out
}

fn indent(value: &Value, width: Option<Value>, first: Option<bool>, blank: Option<bool>, kwargs: Kwargs) -> Result<String, Error> {
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
    for (n, line) in lines(&text).into_iter().enumerate() {
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

fn truncate(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let (length, words, end, leeway, kwargs): Truncate = from_args(&args.into_values())?;
    let length = length.map_or_else(|| kwargs.get::<Option<i64>>("length"), |n| Ok(Some(n)))?.unwrap_or(255);
    let words = words.map_or_else(|| kwargs.get::<Option<bool>>("killwords"), |on| Ok(Some(on)))?.unwrap_or(false);
    let end = end.map_or_else(|| kwargs.get::<Option<String>>("end"), |end| Ok(Some(end)))?.unwrap_or_else(|| "...".to_owned());
    let leeway = leeway.map_or_else(|| kwargs.get::<Option<i64>>("leeway"), |n| Ok(Some(n)))?.unwrap_or(5);
    kwargs.assert_all_used()?;
    let room = length - end.chars().count() as i64;
    let Some(text) = value.as_str() else {
        let empty = value.is_undefined();
        return if empty { Ok(value.clone()) } else { Err(invalid(format!("truncate of a value of type {}", value.kind()))) };
    };
    let Some(room) = usize::try_from(room).ok().filter(|_| leeway >= 0) else { return Err(invalid("truncate to less than its end")) };
    if text.chars().count() as i64 <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let cut = &text[..text.char_indices().nth(room).map_or(text.len(), |(at, _)| at)];
    let kept = if words { cut } else { cut.rsplit_once(' ').map_or(cut, |(before, _)| before) };
    Ok(format!("{kept}{end}").into())
}
