//! Python's methods of strings, mappings and lists.
//!
//! [`METHODS`] names every method that a template can call on a value. The engine's crate of
//! Python's methods is asked for no other.

use minijinja::value::{Kwargs, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::calls::Charge;
use super::refusal::invalid;
use super::text::{self, Side, lines, padded, read, strip, title, touch, window};

/// What has a method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum On {
    Text,
    Map,
    List,
}

/// A method of ours, with the value that has it and the arguments.
type Own = fn(&Value, &[Value]) -> Result<Value, Error>;

/// A method, its charge, and the values that have it.
pub(super) struct Method {
    pub name: &'static str,
    pub on: On,
    pub charge: Charge,
    /// Ours; the engine's where it is absent.
    pub own: Option<Own>,
}

const fn own(on: On, name: &'static str, charge: Charge, own: Own) -> Method {
    Method { name, on, charge, own: Some(own) }
}

const fn engine(on: On, name: &'static str, charge: Charge) -> Method {
    Method { name, on, charge, own: None }
}

pub(super) const METHODS: &[Method] = &[
    own(On::Text, "strip", Charge::Copy, |of, args| stripped(of, Side::Both, args)),
    own(On::Text, "lstrip", Charge::Copy, |of, args| stripped(of, Side::Left, args)),
    own(On::Text, "rstrip", Charge::Copy, |of, args| stripped(of, Side::Right, args)),
    own(On::Text, "removeprefix", Charge::Copy, |of, args| without(of, args, |text, end| text.strip_prefix(end))),
    own(On::Text, "removesuffix", Charge::Copy, |of, args| without(of, args, |text, end| text.strip_suffix(end))),
    own(On::Text, "split", Charge::Split, |of, args| text::split(text_of(of), false, args)),
    own(On::Text, "rsplit", Charge::Split, |of, args| text::split(text_of(of), true, args)),
    own(On::Text, "splitlines", Charge::Split, splitlines),
    own(On::Text, "partition", Charge::Copy, |of, args| parted(of, args, |text, cut| text.split_once(cut), false)),
    own(On::Text, "rpartition", Charge::Copy, |of, args| parted(of, args, |text, cut| text.rsplit_once(cut), true)),
    own(On::Text, "ljust", Charge::Pad, |of, args| justified(of, args, Side::Right)),
    own(On::Text, "rjust", Charge::Pad, |of, args| justified(of, args, Side::Left)),
    own(On::Text, "center", Charge::Pad, |of, args| justified(of, args, Side::Both)),
    own(On::Text, "zfill", Charge::Pad, zfill),
    own(On::Text, "title", Charge::Letters, |of, args| {
        let () = from_args(args)?;
        Ok(title(text_of(of)).into())
    }),
    own(On::Text, "find", Charge::Read, |of, args| Ok(place(of, args, false)?.map_or(Value::from(-1), Value::from))),
    own(On::Text, "rfind", Charge::Read, |of, args| Ok(place(of, args, true)?.map_or(Value::from(-1), Value::from))),
    own(On::Text, "index", Charge::Read, |of, args| {
        place(of, args, false)?.map(Value::from).ok_or_else(|| invalid("substring not found"))
    }),
    own(On::Text, "rindex", Charge::Read, |of, args| {
        place(of, args, true)?.map(Value::from).ok_or_else(|| invalid("substring not found"))
    }),
    own(On::Text, "count", Charge::Read, |of, args| {
        let (what, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
        Ok(window(text_of(of), start, end).map_or(0, |(part, _)| read(part).matches(what).count()).into())
    }),
    own(On::Text, "isspace", Charge::Read, |of, args| {
        let () = from_args(args)?;
        let text = text_of(of);
        Ok((!text.is_empty() && text::chars(text).all(text::is_space)).into())
    }),
    engine(On::Text, "upper", Charge::Letters),
    engine(On::Text, "lower", Charge::Letters),
    engine(On::Text, "capitalize", Charge::Letters),
    engine(On::Text, "islower", Charge::Read),
    engine(On::Text, "isupper", Charge::Read),
    engine(On::Text, "isdigit", Charge::Read),
    engine(On::Text, "isnumeric", Charge::Read),
    engine(On::Text, "isalnum", Charge::Read),
    engine(On::Text, "isalpha", Charge::Read),
    engine(On::Text, "isascii", Charge::Read),
    engine(On::Text, "startswith", Charge::Read),
    engine(On::Text, "endswith", Charge::Read),
    engine(On::Text, "replace", Charge::Replace),
    engine(On::Text, "format", Charge::Format),
    engine(On::Text, "join", Charge::Join),
    engine(On::Map, "keys", Charge::Copy),
    engine(On::Map, "values", Charge::Copy),
    engine(On::Map, "items", Charge::Copy),
    engine(On::Map, "get", Charge::Top),
    engine(On::List, "count", Charge::Read),
    own(On::List, "index", Charge::Read, list_index),
];

/// Calls a method of `value`.
pub(super) fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let on = match value.kind() {
        ValueKind::String => On::Text,
        ValueKind::Map => On::Map,
        ValueKind::Seq => On::List,
        _ => return Err(Error::from(ErrorKind::UnknownMethod)),
    };
    let method = METHODS.iter().find(|method| method.on == on && method.name == name);
    let method = method.ok_or_else(|| Error::from(ErrorKind::UnknownMethod))?;
    method.own.map_or_else(|| pycompat::unknown_method_callback(state, value, name, args), |own| own(value, args))
}

/// The receiver of a method of texts.
fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn stripped(of: &Value, side: Side, args: &[Value]) -> Result<Value, Error> {
    let (of_these,): (Option<&str>,) = from_args(args)?;
    Ok(strip(text_of(of), side, of_these).into())
}

type Rest = for<'t> fn(&'t str, &str) -> Option<&'t str>;

fn without(of: &Value, args: &[Value], cut: Rest) -> Result<Value, Error> {
    let (end,): (&str,) = from_args(args)?;
    let text = text_of(of);
    Ok(cut(text, read(end)).unwrap_or(text).into())
}

fn splitlines(of: &Value, args: &[Value]) -> Result<Value, Error> {
    let (keep, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
    let keep = keep.map_or_else(|| kwargs.get::<Option<bool>>("keepends"), |keep| Ok(Some(keep)))?;
    kwargs.assert_all_used()?;
    Ok(lines(text_of(of), keep.unwrap_or(false)).into_iter().map(Value::from).collect())
}

type Cut = for<'t> fn(&'t str, &str) -> Option<(&'t str, &'t str)>;

fn parted(of: &Value, args: &[Value], cut: Cut, last: bool) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    let text = read(text_of(of));
    let parts = match cut(text, separator) {
        _ if separator.is_empty() => return Err(invalid("empty separator")),
        Some((before, after)) => [before, separator, after],
        None if last => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::new(parts.into_iter().map(Value::from).collect())))
}

fn justified(of: &Value, args: &[Value], side: Side) -> Result<Value, Error> {
    let (width, fill): (i64, Option<&str>) = from_args(args)?;
    let mut fill = fill.unwrap_or(" ").chars();
    let (Some(c), None) = (fill.next(), fill.next()) else { return Err(invalid("the fill is not one character")) };
    Ok(padded(text_of(of), width, c, side).into())
}

fn zfill(of: &Value, args: &[Value]) -> Result<Value, Error> {
    let (width,): (i64,) = from_args(args)?;
    let text = text_of(of);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = &text[..text.len() - digits.len()];
    Ok(format!("{sign}{}", padded(digits, width.saturating_sub(sign.len() as i64), '0', Side::Left)).into())
}

fn place(of: &Value, args: &[Value], last: bool) -> Result<Option<usize>, Error> {
    let (what, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
    Ok(text::find(text_of(of), what, last, start, end))
}

fn list_index(of: &Value, args: &[Value]) -> Result<Value, Error> {
    let (what, start, end): (&Value, Option<i64>, Option<i64>) = from_args(args)?;
    let length = of.len().unwrap_or(0);
    let place = |at: i64| {
        usize::try_from(at)
            .unwrap_or_else(|_| length.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(length)))
    };
    let (start, end) = (place(start.unwrap_or(0)), end.map_or(length, place));
    let mut items = of.try_iter()?.inspect(|_| touch(1)).take(end).enumerate().skip(start);
    let found = items.find(|(_, item)| item == what);
    found.map(|(at, _)| Value::from(at)).ok_or_else(|| invalid("the value is not in the list"))
}
