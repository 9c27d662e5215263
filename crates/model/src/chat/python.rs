//! Values as Python prints them.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ObjectRepr;

use super::text::touch;

/// A float as `repr` writes it: `1e-07`, `1e+16`, `0.5`.
pub(super) fn float(value: f64) -> String {
    // Rust has the same thresholds for exponents, and writes them without sign and padding.
    let text = format!("{value:?}").to_lowercase();
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

pub(super) fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

/// Whether `value` is or holds what the engine writes in another way than Python: a float, or an
/// undefined value in a list.
fn differs(value: &Value) -> bool {
    touch(1);
    let Some(object) = value.as_object() else { return is_float(value) };
    let within = |item: &Value| item.is_undefined() || differs(item);
    match object.repr() {
        ObjectRepr::Seq => value.try_iter().is_ok_and(|mut items| items.any(|item| within(&item))),
        ObjectRepr::Map => {
            value.try_iter().is_ok_and(|mut keys| keys.any(|key| value.get_item(&key).is_ok_and(|item| within(&item))))
        }
        _ => false,
    }
}

/// `repr(value)`. The caller has bounded its size and depth.
pub(super) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    touch(1);
    let items = || value.try_iter().into_iter().flatten().enumerate();
    let comma = |out: &mut String, n: usize| out.push_str(if n > 0 { ", " } else { "" });
    match value.as_object().map(|object| object.repr()) {
        _ if is_float(value) => out.push_str(&float(f64::try_from(value.clone()).unwrap_or(f64::NAN))),
        Some(ObjectRepr::Seq) => {
            let [open, close] = if value.is_tuple() { ['(', ')'] } else { ['[', ']'] };
            out.push(open);
            items().for_each(|(n, item)| {
                comma(out, n);
                write(out, &item);
            });
            out.push_str(if value.is_tuple() && value.len() == Some(1) { "," } else { "" });
            out.push(close);
        }
        Some(ObjectRepr::Map) => {
            out.push('{');
            items().for_each(|(n, key)| {
                comma(out, n);
                write(out, &key);
                out.push_str(": ");
                write(out, &value.get_item(&key).unwrap_or_default());
            });
            out.push('}');
        }
        _ if value.is_undefined() => out.push_str("Undefined"),
        // The engine's own way for everything else is Python's.
        _ => {
            let _ = write!(out, "{value:?}");
        }
    }
}

/// `str(value)` if the engine would write it in another way; otherwise the value itself. The caller
/// has bounded its size and depth.
pub(super) fn text(value: Value) -> Value {
    if !differs(&value) {
        return value;
    }
    repr(&value).into()
}

/// `text` of each element of a list.
pub(super) fn texts(list: Value) -> Value {
    match list.as_object().map(|object| object.repr()) {
        Some(ObjectRepr::Seq) if differs(&list) => list.try_iter().into_iter().flatten().map(text).collect(),
        _ => list,
    }
}

/// An argument of a format: numbers stay numbers, because the format may say how to write them.
pub(super) fn in_format(value: Value) -> Value {
    if value.as_object().is_some() && !value.is_kwargs() { text(value) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_in_python() {
        let cases = [
            (1e-7, "1e-07"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (-2.5e-9, "-2.5e-09"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (9999999999999998.0, "9999999999999998.0"),
            (3.0, "3.0"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (5e-324, "5e-324"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value), expected);
        }
    }
}
