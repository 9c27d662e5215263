//! What filters, tests and methods make of their operands.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::limits::Budget;
use super::refusal::{no_elements, refused};
use super::size::{ELEMENT_BYTES, QUOTED, Size, all, elements, is, is_loop, object, size, text_bytes};

/// Comparisons of an element while a list is sorted, at most: a list of what one rendering may make
/// has less than 2^20 elements.
const COMPARISONS: u64 = 20;

/// How the work of a filter, a test or a method grows with its operands. Where a filter and a
/// method share a name they make the same things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// Only the kind of the operand is looked at.
    Kind,
    /// Only the top of the operand is looked at; arguments are hashed.
    Top,
    /// Each operand is read, and nothing is made of it.
    Read,
    /// One operand is looked for in the other.
    Within,
    /// Each letter is looked up.
    Case,
    /// Each operand is read and copied.
    Copy,
    /// The copy, with a text taken for a list of its characters.
    List,
    /// Each letter is looked up, and becomes up to six.
    Letters,
    Replace,
    Split,
    Join,
    Indent,
    /// Padding up to a number among the arguments.
    Pad,
    /// Lists as long as a number among the arguments.
    Batch,
    Format,
    /// The callable takes from the budget by itself.
    Itself,
    Map,
    Select,
    Sum,
    Sort,
    Pprint,
}

/// Counts a call of the callable `name` on `of`.
pub(super) fn charge(budget: &Budget, charge: Charge, name: &str, of: &Value, rest: &[Value]) -> Result<(), Error> {
    let shallow = of.as_str().is_none() && of.kind() != ValueKind::Iterable;
    match charge {
        Charge::Kind => return Ok(()),
        Charge::Top if shallow => {
            if is_loop(of) {
                return Err(refused("the variable loop as a value"));
            }
            // What is looked up is hashed.
            let bytes = all(budget, rest)?.bytes;
            budget.work(if is(of, "::Namespace") { elements(of) } else { 1 })?;
            return budget.bytes_read(bytes.saturating_mul(2));
        }
        Charge::Within => return within(budget, size(budget, of)?, all(budget, rest)?),
        _ => {}
    }
    if of.is_none()
        && matches!(name, "join" | "sort" | "sum" | "min" | "max" | "reverse" | "list" | "unique" | "batch" | "slice")
    {
        return Err(no_elements(name));
    }
    let (mut value, mut others) = (size(budget, of)?, all(budget, rest)?);
    if matches!(
        charge,
        Charge::List | Charge::Batch | Charge::Join | Charge::Map | Charge::Select | Charge::Sum | Charge::Sort
    ) {
        value.nodes = value.nodes.saturating_add(text_bytes(of));
        others.nodes = rest.iter().fold(others.nodes, |nodes, value| nodes.saturating_add(text_bytes(value)));
    }
    budget.value(made(budget, charge, of, rest, value, others)?)
}

/// One value is compared with each element of the other, and the shorter decides how far.
pub(super) fn within(budget: &Budget, of: Size, rest: Size) -> Result<(), Error> {
    let each = of.bytes.min(rest.bytes).saturating_mul(of.nodes.min(rest.nodes));
    budget.bytes_read(of.bytes.saturating_add(rest.bytes).saturating_add(each))
}

/// Bytes that the call makes; what it reads beyond them is counted here.
fn made(budget: &Budget, charge: Charge, of: &Value, rest: &[Value], value: Size, others: Size) -> Result<u64, Error> {
    let text = of.as_str().unwrap_or_default();
    let argument = |at: usize| rest.get(at).and_then(Value::as_str).unwrap_or_default();
    Ok(match charge {
        Charge::Kind | Charge::Itself | Charge::Within => 0,
        Charge::Read => {
            budget.bytes_read(value.bytes.saturating_add(others.bytes).saturating_mul(2))?;
            0
        }
        Charge::Case => {
            budget.bytes_read(value.bytes.saturating_mul(4))?;
            0
        }
        Charge::Top | Charge::Copy | Charge::List => value.copy().saturating_add(others.copy()),
        Charge::Letters => value.copy().saturating_mul(QUOTED),
        Charge::Replace => {
            let places = match of.as_str() {
                Some(text) if !argument(0).is_empty() => text.matches(argument(0)).count() as u64,
                // Anything else is printed first.
                _ => value.bytes.saturating_add(1),
            };
            value.copy().saturating_add(others.bytes).saturating_add(places.saturating_mul(argument(1).len() as u64))
        }
        Charge::Split => {
            // The separator may come by name.
            let parts = match rest.iter().any(Value::is_kwargs) {
                true => text.len(),
                false if argument(0).is_empty() => text.matches(|c: char| c.is_whitespace() || c.is_control()).count(),
                false => text.matches(argument(0)).count(),
            };
            value
                .bytes
                .saturating_add(others.bytes)
                .saturating_add((parts as u64).saturating_add(1).saturating_mul(ELEMENT_BYTES))
        }
        // The filter joins its operand with its argument, the method its argument with its operand.
        Charge::Join => value.copy().saturating_add(others.copy()).saturating_add(
            value.nodes.max(others.nodes).saturating_mul(text_bytes(of).max(text_bytes(rest.first().unwrap_or(of)))),
        ),
        Charge::Indent => {
            // Every line may begin with the argument, if that is text.
            let lines = text.matches(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')).count() as u64;
            (lines + 2).saturating_mul(largest(rest).max(others.bytes)).saturating_add(value.copy())
        }
        Charge::Pad => {
            value.copy().saturating_add(others.bytes).saturating_add(largest(rest).max(80).saturating_mul(4))
        }
        Charge::Batch => value.copy().saturating_add(largest(rest).saturating_mul(ELEMENT_BYTES)),
        Charge::Format if of.as_str().is_none() => return Err(refused("a format that is no text")),
        Charge::Format => formatted(text, rest, others)?,
        Charge::Map => mapped(budget, value, others, rest)?,
        Charge::Select => {
            budget.work(value.nodes.saturating_mul(others.nodes + others.bytes / 64))?;
            budget.bytes_read(value.bytes.saturating_mul(4))?;
            value.copy()
        }
        Charge::Sum if value.longest == 0 && value.levels < 2 => value.copy(),
        // Each text or list is copied by every sum behind it.
        Charge::Sum => value.copy().saturating_mul(value.nodes.max(1)),
        Charge::Sort => sorted(budget, of, rest, value, others)?,
        Charge::Pprint => value.copy().saturating_add(value.nodes.saturating_mul(4 * (value.levels + 1))),
    })
}

/// The engine makes small letters of both texts whenever it compares two.
fn sorted(budget: &Budget, of: &Value, rest: &[Value], value: Size, others: Size) -> Result<u64, Error> {
    budget.work(value.nodes.saturating_mul(COMPARISONS).saturating_mul(1 + others.bytes / 64))?;
    budget.bytes_read(value.bytes.saturating_mul(COMPARISONS))?;
    let longest = if of.as_str().is_some() { 4 } else { value.longest };
    budget.bytes_read(elements(of).saturating_mul(COMPARISONS).saturating_mul(longest))?;
    // A key is a list of the attributes between commas.
    let commas = |text: &str| text.matches(',').count() as u64;
    let named = |value: &Value| value.get_attr("attribute").ok().and_then(|name| name.as_str().map(commas));
    let attributes =
        rest.iter().map(|value| value.as_str().map(commas).or_else(|| named(value)).unwrap_or(0)).sum::<u64>();
    Ok(value.copy().saturating_add(elements(of).saturating_mul(attributes).saturating_mul(ELEMENT_BYTES)))
}

/// The largest number among the arguments, named ones included.
fn largest(arguments: &[Value]) -> u64 {
    let number = |value: &Value| value.as_usize().unwrap_or(0) as u64;
    let named = |value: &Value| {
        value
            .try_iter()
            .into_iter()
            .flatten()
            .filter_map(|key| value.get_item(&key).ok())
            .map(|item| number(&item))
            .max()
    };
    arguments
        .iter()
        .map(|value| if object(value).is_some() { named(value).unwrap_or(0) } else { number(value) })
        .max()
        .unwrap_or(0)
        .max(4)
}

/// Each placeholder of a format takes an argument, or its width.
pub(super) fn formatted(format: &str, arguments: &[Value], sizes: Size) -> Result<u64, Error> {
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
fn mapped(budget: &Budget, value: Size, others: Size, rest: &[Value]) -> Result<u64, Error> {
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
        return Err(refused(&format!("map('{name}')")));
    }
    budget.work(value.nodes.saturating_mul(1 + others.bytes / 64))?;
    Ok(value.copy().saturating_mul(QUOTED).saturating_add(value.nodes.saturating_mul(others.bytes)))
}
