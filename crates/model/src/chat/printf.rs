//! The operator `%` as Python has it. The engine writes each argument by its place's flags.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Error, Value};

use super::python;
use super::refusal::invalid;
use super::text::{chars, touch};

/// The filter `format`: the operator `%` with its arguments as a tuple, or as a mapping if they
/// have names.
pub(super) fn filter(template: &str, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let arguments = arguments.into_values();
    match arguments.split_last() {
        Some((named, [])) if named.is_kwargs() => formatted(template, named),
        Some((named, _)) if named.is_kwargs() => Err(invalid("format takes arguments with names or without, not both")),
        _ => formatted(template, &Value::from(Tuple::new(arguments))),
    }
}

/// `a % b`: formats if `a` is text, else the remainder with the sign of `b`.
pub(super) fn percent(a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(template) = a.as_str() {
        return formatted(template, b).map(Value::from);
    }
    let whole = |value: &Value| {
        (value.is_integer() || value.kind() == ValueKind::Bool).then(|| i128::try_from(value.clone()).ok()).flatten()
    };
    let number = |value: &Value| {
        whole(value)
            .map(|n| n as f64)
            .or_else(|| python::is_float(value).then(|| f64::try_from(value.clone()).ok()).flatten())
    };
    let zero = || invalid("a remainder of a division by zero");
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        let rest = a.checked_rem(b).ok_or_else(zero)?;
        let rest = if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest };
        return Ok(i64::try_from(rest).map_or_else(|_| Value::from(rest), Value::from));
    }
    match (number(a), number(b)) {
        (Some(_), Some(0.0)) => Err(zero()),
        (Some(a), Some(b)) => {
            let rest = a % b;
            Ok(Value::from(match rest {
                0.0 => 0.0_f64.copysign(b),
                _ if (rest < 0.0) != (b < 0.0) => rest + b,
                _ => rest,
            }))
        }
        _ => Err(invalid(format!("tried to use % operator on unsupported types {} and {}", a.kind(), b.kind()))),
    }
}

/// A tuple has one value for each place, a mapping has named values.
pub(super) fn formatted(template: &str, arguments: &Value) -> Result<String, Error> {
    touch(template.len());
    let values: Vec<Value> =
        if arguments.is_tuple() { arguments.try_iter()?.collect() } else { vec![arguments.clone()] };
    let named = arguments.kind() == ValueKind::Map;
    let (mut out, mut rest, mut taken) = (String::new(), template, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let place = Place::read(&rest[at + 1..]).ok_or_else(|| invalid("incomplete format"))?;
        rest = place.rest;
        let value = match place.name {
            _ if place.kind == '%' => {
                out.push('%');
                continue;
            }
            Some(name) if named => {
                taken = values.len();
                Some(arguments.get_attr(name)?).filter(|value| !value.is_undefined())
            }
            Some(_) => return Err(invalid("a format with names takes a mapping")),
            None => {
                taken += 1;
                values.get(taken - 1).cloned()
            }
        };
        let value = value.ok_or_else(|| invalid("not enough arguments for the format"))?;
        out.push_str(&place.write(value)?);
    }
    // Python lets one list or mapping go unused.
    if taken < values.len() && (arguments.is_tuple() || !matches!(arguments.kind(), ValueKind::Map | ValueKind::Seq)) {
        return Err(invalid("not all arguments converted during string formatting"));
    }
    Ok(out + rest)
}

/// `%(name)flags kind`, behind its percent sign.
struct Place<'s> {
    name: Option<&'s str>,
    flags: &'s str,
    kind: char,
    rest: &'s str,
}

impl<'s> Place<'s> {
    fn read(text: &'s str) -> Option<Self> {
        let (name, text) = match text.strip_prefix('(') {
            Some(inner) => inner.split_once(')').map(|(name, text)| (Some(name), text))?,
            None => (None, text),
        };
        let end = text.find(|c: char| !matches!(c, '#' | '0'..='9' | '-' | ' ' | '+' | '.' | 'l' | 'h' | 'L'))?;
        let kind = text[end..].chars().next()?;
        Some(Self {
            name,
            flags: text[..end].trim_end_matches(['l', 'h', 'L']),
            kind,
            rest: &text[end + kind.len_utf8()..],
        })
    }

    fn write(&self, value: Value) -> Result<String, Error> {
        let (kind, value) = match self.kind {
            'r' => return Ok(self.pad(&python::repr(&value))),
            's' => return Ok(self.pad(&python::text(value).to_string())),
            // Whole numbers are cut off a float.
            'd' | 'i' | 'u' if python::is_float(&value) => {
                let whole = f64::try_from(value)?.trunc();
                if !whole.is_finite() || whole.abs() >= 1e38 {
                    return Err(invalid("a whole number of more than 38 digits in a format"));
                }
                ('d', Value::from(whole as i128))
            }
            kind => (kind, value),
        };
        format(FormatStyle::Printf, &format!("%{}{kind}", self.flags), &[value])
    }

    /// As many characters of a text as the precision allows, and spaces up to the width. The engine
    /// counts bytes.
    fn pad(&self, text: &str) -> String {
        let numbers = self.flags.trim_start_matches(['#', '0', '-', ' ', '+']);
        let (width, precision) =
            numbers.split_once('.').map_or((numbers, None), |(width, precision)| (width, Some(precision)));
        let most = precision.map_or(usize::MAX, |digits| digits.parse().unwrap_or(0));
        let text: String = chars(text).take(most).collect();
        let spaces = " ".repeat(width.parse().unwrap_or(0_usize).saturating_sub(chars(&text).count()));
        if self.flags.contains('-') { text + &spaces } else { spaces + &text }
    }
}
