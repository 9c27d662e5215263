//! What an instruction is about to make, counted from its operands before it runs.
//!
//! A bound is exact where it is cheap to have (`+`, `replace`, `split`) and generous elsewhere.
//! What has none is refused by name.

use minijinja::value::{DynObject, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::error::WAY_OUT;
use super::limits::{Budget, LEVELS, TOO_NESTED};
use super::python;

/// Bytes of an element of a list, and of an entry of a mapping.
const ELEMENT_BYTES: u64 = 96;
/// Characters that one inside a quoted text may take: `\u{1}`.
const QUOTED: u64 = 6;
/// Levels that a filter may put around its operand, as `groupby` does.
const WRAPS: usize = 2;

/// Filters and methods that take a text for a list of its characters.
const TAKE_APART: [&str; 18] = [
    "batch",
    "chain",
    "groupby",
    "join",
    "list",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "slice",
    "sort",
    "sum",
    "unique",
    "zip",
    "reverse",
];
/// Methods that make nothing of the text that they read.
const READ: [&str; 14] = [
    "startswith",
    "endswith",
    "find",
    "rfind",
    "count",
    "index",
    "isdigit",
    "isnumeric",
    "isalnum",
    "isalpha",
    "isascii",
    "islower",
    "isupper",
    "isspace",
];

/// What a value takes when it is printed or copied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub nodes: u64,
    pub bytes: u64,
    pub levels: u64,
}

impl Size {
    fn and(self, other: Size) -> Size {
        let levels = self.levels.max(other.levels);
        Size { nodes: self.nodes.saturating_add(other.nodes), bytes: self.bytes.saturating_add(other.bytes), levels }
    }

    /// Bytes of a copy, or of the printed value.
    fn copy(self) -> u64 {
        self.bytes.saturating_add(self.nodes.saturating_mul(ELEMENT_BYTES))
    }
}

pub(super) fn refused(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} is refused, since nothing bounds it; {WAY_OUT}"))
}

/// In Python, none has no elements; in the engine it is an empty list.
fn no_elements(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} over none, which has no elements"))
}

fn object(value: &Value) -> Option<&DynObject> {
    value.as_object()
}

fn is(value: &Value, name: &str) -> bool {
    object(value).is_some_and(|object| object.type_name().ends_with(name))
}

fn is_loop(value: &Value) -> bool {
    is(value, "::Loop")
}

fn text_bytes(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64)
}

/// Elements at the top of a value.
fn elements(value: &Value) -> u64 {
    value.len().unwrap_or(0) as u64
}

/// Walks all of a value, as printing, comparing or serializing it would. Every visit is counted, so
/// a list of two lists of two lists, forty levels deep, ends here and not there.
///
/// # Errors
/// Values nested too deep, those that hold themselves among them; a loop where a value stands,
/// which would keep every loop alive.
pub(super) fn size(budget: &Budget, value: &Value) -> Result<Size, Error> {
    walk(budget, value, 0)
}

fn walk(budget: &Budget, value: &Value, level: usize) -> Result<Size, Error> {
    if level + WRAPS > LEVELS {
        return Err(TOO_NESTED.into());
    }
    let quoted = if level == 0 { 1 } else { QUOTED };
    let leaf = |bytes: usize| Size { nodes: 1, bytes: (bytes as u64).saturating_mul(quoted) + 2, levels: 0 };
    budget.work(1)?;
    if let Some(text) = value.as_str() {
        return Ok(leaf(text.len()));
    }
    let Some(inner) = object(value) else {
        // Digits of the largest float; bytes are printed escaped.
        return Ok(leaf(value.as_bytes().map_or(330, <[u8]>::len)));
    };
    if is_loop(value) {
        return Err(refused("the variable loop as a value"));
    }
    // A namespace alone can change after it was counted. Within a value it could come to hold that
    // value: a circle, which is never freed.
    if level > 0 && is(value, "::Namespace") {
        return Err(refused("a namespace within a value"));
    }
    let mut all = Size { nodes: 1, bytes: 4, levels: 0 };
    match inner.repr() {
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            for item in value.try_iter()? {
                all = all.and(walk(budget, &item, level + 1)?);
                all.bytes = all.bytes.saturating_add(2);
            }
        }
        ObjectRepr::Map => {
            for key in value.try_iter()? {
                // The engine hashes a key to find its item, and recurses over it without a bound.
                // So the key is walked first, and counts again for each map that it is a key of.
                let size = walk(budget, &key, level + 1)?;
                budget.work(size.nodes)?;
                let item = value.get_item(&key)?;
                all = all.and(size).and(walk(budget, &item, level + 1)?);
                all.bytes = all.bytes.saturating_add(4);
            }
        }
        // A function, a macro, a cycler: what it prints is its name.
        _ => all.bytes = value.to_string().len() as u64,
    }
    Ok(Size { levels: all.levels + 1, ..all })
}

/// The filter before every instruction: counts what it will make of its operands, which come with
/// its name behind them, and gives them back in the order that `UnpackList` wants.
pub(super) fn check(budget: &Budget, operands: &[Value]) -> Result<Value, Error> {
    let Some((what, operands)) = operands.split_last() else { return Ok(Value::UNDEFINED) };
    let what = what.as_str().unwrap_or_default();
    charge(budget, what, operands)?;
    let forwards = what == "[:]" && runs_over_nothing(operands);
    let operands = operands.iter().enumerate().rev().map(|(n, operand)| match n {
        3 if forwards => Value::from(1),
        _ => as_python(what, n, operand.clone()),
    });
    Ok(operands.collect::<Vec<_>>().into())
}

/// A slice backwards over nothing, where the engine's count would overflow. It is empty in either
/// direction.
fn runs_over_nothing(operands: &[Value]) -> bool {
    matches!(operands, [of, _, _, step] if elements(of) == 0 && step.as_i64().is_some_and(|step| step < 0))
}

/// The n-th operand of an instruction: as text, if the instruction makes text of it and the text
/// would differ from Python's.
fn as_python(what: &str, n: usize, operand: Value) -> Value {
    match (what, n) {
        ("~", _) => python::text(operand),
        ("|upper" | "|lower" | "|trim" | "|replace" | "|title" | "|capitalize" | "|center" | "|escape" | "|e" | "|split", 0) => {
            python::text(operand)
        }
        ("|join", 0) | (".join", 1) => python::texts(operand),
        (".format", 1..) => python::in_format(operand),
        // The engine knows no length of a text, which `loop.last` needs.
        ("for", 0) => operand.as_str().map_or_else(|| operand.clone(), |text| text.chars().map(Value::from).collect()),
        _ => operand,
    }
}

/// The filter behind what may be lazy: a list of its elements. Lazy values that wrap each other
/// would recurse when they are read.
pub(super) fn whole(budget: &Budget, value: Value) -> Result<Value, Error> {
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let mut items = vec![];
    for item in value.try_iter()? {
        budget.work(1)?;
        budget.value(size_of::<Value>() as u64)?;
        items.push(item);
    }
    Ok(Value::from(items))
}

fn all(budget: &Budget, values: &[Value]) -> Result<Size, Error> {
    values.iter().try_fold(Size::default(), |so_far, value| Ok(so_far.and(size(budget, value)?)))
}

fn charge(budget: &Budget, what: &str, operands: &[Value]) -> Result<(), Error> {
    match (what, operands) {
        ("+", [a, b]) => budget.value(text_bytes(a) + text_bytes(b) + (elements(a) + elements(b)) * 24),
        ("*", [a, b]) => {
            let times = a.as_usize().or_else(|| b.as_usize()).unwrap_or(0) as u64;
            let once =
                if object(a).is_some() || object(b).is_some() { (elements(a) + elements(b)) * 24 } else { text_bytes(a) + text_bytes(b) };
            budget.value(once.saturating_mul(times))
        }
        ("%", [a, b]) => match a.as_str() {
            Some(text) => {
                let size = size(budget, b)?;
                budget.value(formatted(text, &[], size)?)
            }
            None => budget.work(1),
        },
        ("~", operands) => budget.value(all(budget, operands)?.bytes),
        ("[]", [of, at]) => {
            let nested = if is_loop(of) { Size::default() } else { size(budget, at)? };
            budget.bytes_read(text_bytes(of) + nested.bytes)
        }
        ("[:]", [of, from, to, step]) => slice(budget, of, [from, to, step]),
        ("for", [over]) if over.is_none() => Err(no_elements("a loop")),
        // A text becomes a list of its characters.
        ("for", [over]) => budget.value(text_bytes(over) * size_of::<Value>() as u64),
        // A namespace within a namespace could be a circle, which is never freed.
        ("set", [value, _]) if is(value, "::Namespace") => Err(refused("a namespace within a value")),
        ("in", [a, b]) => {
            let (a, b) = (size(budget, a)?, size(budget, b)?);
            budget.bytes_read(a.bytes.saturating_add(b.bytes).saturating_add(a.bytes.min(b.bytes).saturating_mul(a.nodes.min(b.nodes))))
        }
        ("==", [a, b]) => budget.bytes_read(size(budget, a)?.bytes.saturating_add(size(budget, b)?.bytes)),
        (".cycle", [_]) => Err(refused("loop.cycle without values")),
        (name, [of, rest @ ..]) if name.starts_with('.') && is_loop(of) => all(budget, rest).and_then(|size| budget.value(size.copy())),
        (name, [of, rest @ ..]) if name.starts_with(['.', '|']) => call(budget, &name[1..], of, rest),
        (name, [of, rest @ ..]) if name.starts_with("is ") => test(budget, &name[3..], of, rest),
        // A list, and what a function makes, share what they hold.
        (_, operands) => {
            // Keys among them are hashed.
            let bytes = all(budget, operands)?.bytes;
            budget.bytes_read(bytes.saturating_mul(2))?;
            let held = |value: &Value| if object(value).is_some() { elements(value) + 1 } else { 1 };
            budget.value(operands.iter().map(|value| held(value) * ELEMENT_BYTES).sum())
        }
    }
}

/// The engine counts backwards without a check where the slice is empty.
fn slice(budget: &Budget, of: &Value, [from, to, step]: [&Value; 3]) -> Result<(), Error> {
    if of.is_none() || of.is_undefined() {
        return Err(Error::new(ErrorKind::InvalidOperation, format!("a slice of a value of type {}", of.kind())));
    }
    let ends = [from, to, step].map(|end| end.as_i64());
    if ends.iter().flatten().any(|end| end.unsigned_abs() > 1 << 40) {
        return Err(refused("a slice with such large ends"));
    }
    let backwards = ends[2].is_some_and(|step| step < 0);
    if backwards && elements(of) > 0 && (ends[0].is_some() || ends[1].is_some()) {
        return Err(refused("a slice that runs backwards between given ends"));
    }
    // Characters are collected before they are turned around.
    budget.value(text_bytes(of) * if backwards { 5 } else { 1 } + elements(of) * 24)
}

/// Tests that read more than the kind of their operand compare it.
fn test(budget: &Budget, name: &str, of: &Value, rest: &[Value]) -> Result<(), Error> {
    if rest.is_empty() && !matches!(name, "lower" | "upper") {
        return Ok(());
    }
    let (of, rest) = (size(budget, of)?, all(budget, rest)?);
    // Case is looked up for each character.
    let times = if matches!(name, "lower" | "upper") { 4 } else { 1 };
    budget.bytes_read(of.bytes.saturating_mul(times).saturating_add(rest.bytes).saturating_mul(of.nodes.min(rest.nodes).max(1)))
}

/// Filters and Python's methods, which make the same things where they share a name.
fn call(budget: &Budget, name: &str, of: &Value, rest: &[Value]) -> Result<(), Error> {
    // Of these only the top is looked at.
    let counts = name == "count" && rest.is_empty();
    if (counts || matches!(name, "length" | "first" | "last" | "d" | "default" | "bool" | "get" | "attr")) && of.as_str().is_none() {
        if is_loop(of) {
            return Err(refused("the variable loop as a value"));
        }
        // What is looked up is hashed.
        let bytes = all(budget, rest)?.bytes;
        budget.work(1)?;
        return budget.bytes_read(bytes.saturating_mul(2));
    }
    if of.is_none() && matches!(name, "join" | "sort" | "sum" | "min" | "max" | "reverse" | "list" | "unique" | "batch" | "slice") {
        return Err(no_elements(name));
    }
    let (mut value, mut others) = (size(budget, of)?, all(budget, rest)?);
    let text = of.as_str().unwrap_or_default();
    if READ.contains(&name) {
        return budget.bytes_read(value.bytes.saturating_add(others.bytes).saturating_mul(2));
    }
    if TAKE_APART.contains(&name) {
        value.nodes = value.nodes.saturating_add(text_bytes(of));
        others.nodes = rest.iter().fold(others.nodes, |nodes, value| nodes.saturating_add(text_bytes(value)));
    }
    let argument = |at: usize| rest.get(at).and_then(Value::as_str).unwrap_or_default();
    let made = match name {
        "replace" => {
            let places = match of.as_str() {
                Some(text) if !argument(0).is_empty() => text.matches(argument(0)).count() as u64,
                // Anything else is printed first.
                _ => value.bytes.saturating_add(1),
            };
            value.copy().saturating_add(places.saturating_mul(argument(1).len() as u64))
        }
        "split" | "rsplit" | "splitlines" | "lines" => {
            // The separator may come by name.
            let parts = match rest.iter().any(Value::is_kwargs) {
                true => text.len(),
                _ if of.as_str().is_none() => usize::try_from(value.bytes).unwrap_or(usize::MAX),
                false if argument(0).is_empty() => text.matches(char::is_whitespace).count(),
                false => text.matches(argument(0)).count(),
            };
            value.bytes.saturating_add((parts as u64).saturating_add(1).saturating_mul(ELEMENT_BYTES))
        }
        // The filter joins its operand with its argument, the method its argument with its operand.
        "join" => value
            .copy()
            .saturating_add(others.copy())
            .saturating_add(value.nodes.max(others.nodes).saturating_mul(text_bytes(of).max(text_bytes(rest.first().unwrap_or(of))))),
        "indent" => {
            // Every line may begin with the argument, if that is text.
            let lines = text.matches(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')).count() as u64;
            (lines + 2).saturating_mul(largest(rest).max(others.bytes)).saturating_add(value.copy())
        }
        "ljust" | "rjust" | "center" | "zfill" => value.copy().saturating_add(largest(rest).max(80).saturating_mul(4)),
        "batch" | "slice" => (value.copy()).saturating_add(largest(rest).saturating_mul(ELEMENT_BYTES)),
        "format" if of.as_str().is_none() => return Err(refused("a format that is no text")),
        "format" => formatted(text, rest, others)?,
        "tojson" => return Ok(()),
        "map" => return mapped(budget, value, others, rest),
        "select" | "reject" | "selectattr" | "rejectattr" => {
            budget.work(value.nodes.saturating_mul(others.nodes + others.bytes / 64))?;
            value.copy()
        }
        "sum" => value.copy().saturating_mul(value.nodes.max(1)),
        "sort" | "unique" | "groupby" | "dictsort" | "min" | "max" => {
            budget.work(value.nodes.saturating_mul(20).saturating_mul(1 + others.bytes / 64))?;
            budget.bytes_read(value.bytes.saturating_mul(20))?;
            value.copy()
        }
        "pprint" => value.copy().saturating_add(value.nodes.saturating_mul(4 * (value.levels + 1))),
        "escape" | "e" | "lower" | "upper" | "title" | "capitalize" => value.copy().saturating_mul(QUOTED),
        _ => value.copy().saturating_add(others.copy()),
    };
    budget.value(made)
}

/// The largest number among the arguments, named ones included.
fn largest(arguments: &[Value]) -> u64 {
    let number = |value: &Value| value.as_usize().unwrap_or(0) as u64;
    let named =
        |value: &Value| value.try_iter().into_iter().flatten().filter_map(|key| value.get_item(&key).ok()).map(|item| number(&item)).max();
    arguments.iter().map(|value| if object(value).is_some() { named(value).unwrap_or(0) } else { number(value) }).max().unwrap_or(0).max(4)
}

/// Each place of a format takes an argument, or its width.
fn formatted(format: &str, arguments: &[Value], sizes: Size) -> Result<u64, Error> {
    let widths = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let wide = widths.map(|digits| digits.parse().unwrap_or(u64::MAX)).max().unwrap_or(0);
    // A width that is an argument itself: `{:{}}`.
    let nested = format.split('{').skip(1).any(|part| !part.is_empty() && !part.contains('}'));
    if wide > 4096 || format.contains('*') || nested && largest(arguments) > 4096 {
        return Err(refused("a format wider than 4096 characters"));
    }
    let places = format.matches(['%', '{']).count() as u64;
    // `%r` quotes its argument.
    let argument = sizes.bytes.saturating_mul(if format.contains('r') { QUOTED } else { 1 });
    Ok((format.len() as u64).saturating_add(places.saturating_mul(wide.saturating_add(argument).saturating_add(16))))
}

/// `map` calls filters without their checks, so it may call those that make no more than they are
/// given.
fn mapped(budget: &Budget, value: Size, others: Size, rest: &[Value]) -> Result<(), Error> {
    const PLAIN: [&str; 20] = [
        "trim",
        "upper",
        "lower",
        "string",
        "length",
        "count",
        "first",
        "last",
        "int",
        "float",
        "list",
        "capitalize",
        "title",
        "items",
        "abs",
        "bool",
        "default",
        "d",
        "tojson",
        "safe",
    ];
    let filter = rest.first().and_then(Value::as_str);
    if let Some(name) = filter.filter(|name| !PLAIN.contains(&name.trim())) {
        return Err(refused(&format!("map({name:?})")));
    }
    budget.work(value.nodes.saturating_mul(1 + others.bytes / 64))?;
    budget.value(value.copy().saturating_mul(QUOTED).saturating_add(value.nodes.saturating_mul(others.bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::{Enumerator, Object};
    use std::sync::{Arc, Mutex};

    /// A map whose keys change after it was made, as those of no template's value do.
    #[derive(Debug)]
    struct Changing(Mutex<Vec<Value>>);

    impl Object for Changing {
        fn get_value(self: &Arc<Self>, _key: &Value) -> Option<Value> {
            Some(Value::from(1))
        }

        fn enumerate(self: &Arc<Self>) -> Enumerator {
            Enumerator::Values(self.0.lock().unwrap().clone())
        }
    }

    #[test]
    fn a_map_that_is_a_key_of_its_own_key_is_refused_before_it_is_hashed() {
        let inner = Arc::new(Changing(Mutex::new(vec![])));
        let outer: Value = [(Value::from_dyn_object(inner.clone()), Value::from(1))].into_iter().collect();
        assert!(size(&Budget::default(), &outer).is_ok());
        inner.0.lock().unwrap().push(outer.clone());
        let error = size(&Budget::default(), &outer).unwrap_err();
        assert!(error.to_string().contains("64 levels"), "{error}");
    }

    #[test]
    fn a_key_counts_again_for_its_hash() {
        let map: Value = (0..100_000).map(|n| (Value::from(n), Value::from(1))).collect();
        let budget = Budget::default();
        size(&budget, &map).unwrap();
        // The map, and a key, its hash and an item for each entry: of 8 million.
        assert_eq!(budget.thousandths()[2], 300_001 * 1000 / 8_000_000);
    }
}
