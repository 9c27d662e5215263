//! What an instruction is about to make, counted from its operands before it runs.
//!
//! A bound is exact where it is cheap to have (`+`, `replace`, `split`) and generous elsewhere.
//! What has none is refused by name.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::calls::{self, formatted};
use super::limits::{ATTRIBUTES, Budget, MANY_ATTRIBUTES};
use super::refusal::{no_elements, refused};
use super::size::{ELEMENT_BYTES, Size, all, elements, is, is_loop, object, size, text_bytes};
use super::{callables, python};

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
        ("|upper" | "|lower" | "|trim" | "|replace" | "|title" | "|capitalize" | "|center" | "|escape" | "|e", 0) => {
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

fn charge(budget: &Budget, what: &str, operands: &[Value]) -> Result<(), Error> {
    match (what, operands) {
        ("+", [a, b]) => budget.value(text_bytes(a) + text_bytes(b) + (elements(a) + elements(b)) * 24),
        ("*", [a, b]) => {
            let times = a.as_usize().or_else(|| b.as_usize()).unwrap_or(0) as u64;
            let once = if object(a).is_some() || object(b).is_some() {
                (elements(a) + elements(b)) * 24
            } else {
                text_bytes(a) + text_bytes(b)
            };
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
        // The engine counts the attributes of a namespace whenever it asks whether it is true.
        ("set", [_, of]) if is(of, "::Namespace") && elements(of) >= ATTRIBUTES => Err(refused(MANY_ATTRIBUTES)),
        ("in", [a, b]) => calls::within(budget, size(budget, a)?, size(budget, b)?),
        ("==", [a, b]) => budget.bytes_read(size(budget, a)?.bytes.saturating_add(size(budget, b)?.bytes)),
        (".cycle", [_]) => Err(refused("loop.cycle without values")),
        (name, [of, rest @ ..]) if name.starts_with('.') && is_loop(of) => {
            all(budget, rest).and_then(|size| budget.value(size.copy()))
        }
        (name, [of, rest @ ..]) if callables::charge(name).is_some() => {
            calls::charge(budget, callables::charge(name).unwrap_or(calls::Charge::Copy), &name[1..], of, rest)
        }
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
