//! Functions, tests and filters of `transformers` that the engine lacks, or has otherwise.

use std::sync::Arc;

use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::error::Raised;
use super::limits::Budget;
use super::strftime::NOW;
use super::text::touch;
use super::{json, size, strftime};

pub(super) fn add_range(to: &mut Environment, name: &'static str, budget: &Arc<Budget>) {
    let own = Arc::clone(budget);
    to.add_function(name, move |first: i64, end: Option<i64>, step: Option<i64>| range(&own, first, end, step));
}

pub(super) fn add_strftime_now(to: &mut Environment, name: &'static str, budget: &Arc<Budget>) {
    let own = Arc::clone(budget);
    to.add_function(name, move |state: &State, format: &str| {
        // No directive becomes more than ten times as long.
        own.value(format.len() as u64 * 10)?;
        strftime_now(state, format)
    });
}

pub(super) fn add_tojson(to: &mut Environment, name: &'static str, budget: &Arc<Budget>) {
    let own = Arc::clone(budget);
    to.add_filter(name, move |value: &Value, ascii: Option<bool>, kwargs: Kwargs| tojson(&own, value, ascii, kwargs));
}

/// Elements of a range at most, as the engine has it.
const RANGE: i128 = 100_000;

/// Jinja's `range`: the engine's own overflows.
fn range(budget: &Budget, first: i64, end: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (first, end) = end.map_or((0, first), |end| (first, end));
    let (first, end, step) = (i128::from(first), i128::from(end), i128::from(step.unwrap_or(1)));
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot create range with step of 0"));
    }
    let (distance, stride) = if step > 0 { (end - first, step) } else { (first - end, -step) };
    let count = (distance.max(0) + stride - 1) / stride;
    if count > RANGE {
        return Err(Error::new(ErrorKind::InvalidOperation, "range has too many elements"));
    }
    budget.value(count as u64 * size_of::<Value>() as u64)?;
    touch(usize::try_from(count).unwrap_or(usize::MAX));
    let number = |at: i128| i64::try_from(first + at * step).ok().map(Value::from);
    Ok((0..count).filter_map(number).collect::<Vec<_>>().into())
}

/// Jinja's `divisibleby`: the engine's own divides by 0.
pub(super) fn divisible(value: &Value, by: &Value) -> Result<bool, Error> {
    let whole = |value: &Value| i128::try_from(value.clone()).ok();
    match (whole(value), whole(by)) {
        (Some(value), Some(by)) => Ok(value.checked_rem(by) == Some(0)),
        _ => Ok(f64::try_from(value.clone())? % f64::try_from(by.clone())? == 0.0),
    }
}

pub(super) fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

fn strftime_now(state: &State, format: &str) -> Result<String, Error> {
    touch(format.len());
    let now = state.lookup(NOW).and_then(|now| now.as_i64());
    now.map(|now| strftime::format(format, now))
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "this platform has no clock; pass now_unix_s"))
}

/// `json.dumps` with `ensure_ascii=False` as its default.
fn tojson(budget: &Budget, value: &Value, ensure_ascii: Option<bool>, kwargs: Kwargs) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "tojson of an undefined value"));
    }
    let indent: Option<Value> = kwargs.get("indent")?;
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    let style = json::Style {
        indent: indent.filter(|indent| !indent.is_none()).map(usize::try_from).transpose()?,
        separators: separators.and_then(|pair| <[String; 2]>::try_from(pair).ok()),
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.or(ensure_ascii).unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    kwargs.assert_all_used()?;
    let size = size::size(budget, value)?;
    // Each element stands on a line of its own, behind its indent, and has a separator on either
    // side.
    let separators = style.separators.as_ref().map_or(4, |pair| pair[0].len() + pair[1].len());
    let line = style.indent.unwrap_or(0).saturating_mul(usize::try_from(size.levels + 1).unwrap_or(usize::MAX));
    let lines = size.nodes.saturating_mul(2).saturating_mul(separators.saturating_add(line).saturating_add(3) as u64);
    budget.value(size.bytes.saturating_mul(if style.ensure_ascii { 2 } else { 1 }).saturating_add(lines))?;
    json::dumps(value, &style)
}
