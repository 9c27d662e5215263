//! Every filter, test and function that a template can call, with its charge.
//!
//! The environment begins empty and holds what stands here, so the engine knows nothing that has no
//! charge. Methods are in `methods.rs`, operators in `compile.rs`.

use std::sync::Arc;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, Value, filters, functions, tests};

use super::calls::Charge;
use super::limits::{ATTRIBUTES, Budget, MANY_ATTRIBUTES};
use super::methods::METHODS;
use super::refusal::refused;
use super::size::{elements, is_loop};
use super::{filters as own, functions as ours, printf};

/// What a template calls by a name.
pub(super) struct Callable {
    pub name: &'static str,
    pub charge: Charge,
    /// Adds it to an environment whose renderings take from the budget.
    add: fn(&mut Environment, &'static str, &Arc<Budget>),
}

macro_rules! callables {
    ($add:ident: $($name:literal $charge:ident $function:expr),+ $(,)?) => {
        &[$(Callable {
            name: $name,
            charge: Charge::$charge,
            add: |to, name, _| {
                to.$add(name, $function);
            },
        }),+]
    };
}

/// Jinja's filters. The functions of `filters` are the engine's, those of `own` are ours.
pub(super) const FILTERS: &[Callable] = callables!(add_filter:
    "abs" Kind filters::abs,
    "attr" Top filters::attr,
    "batch" Batch filters::batch,
    "capitalize" Letters own::capitalize,
    "center" Pad own::center,
    "count" Top own::length,
    "d" Top filters::default,
    "default" Top filters::default,
    "dictsort" Sort filters::dictsort,
    "e" Letters own::escape,
    "escape" Letters own::escape,
    "first" Top own::first,
    "float" Copy own::float,
    "format" Format printf::filter,
    "groupby" Sort filters::groupby,
    "indent" Indent own::indent,
    "int" Copy own::int,
    "items" Copy filters::items,
    "join" Join filters::join,
    "last" Top own::last,
    "length" Top own::length,
    "list" List filters::list,
    "lower" Letters filters::lower,
    "map" Map filters::map,
    "max" Sort filters::max,
    "min" Sort filters::min,
    "pprint" Pprint filters::pprint,
    "reject" Select filters::reject,
    "rejectattr" Select filters::rejectattr,
    "replace" Replace own::replace,
    "reverse" List filters::reverse,
    "round" Copy own::round,
    "safe" Copy filters::safe,
    "select" Select filters::select,
    "selectattr" Select filters::selectattr,
    "slice" Batch filters::slice,
    "sort" Sort filters::sort,
    "string" Copy own::string,
    "sum" Sum filters::sum,
    "title" Letters filters::title,
    "trim" Copy own::trim,
    "truncate" Copy own::truncate,
    "unique" Sort filters::unique,
    "upper" Letters filters::upper,
    "urlencode" Letters own::urlencode,
    "wordcount" Copy own::wordcount,
);

/// The filter that counts what it makes by itself.
pub(super) const TOJSON: &Callable = &Callable { name: "tojson", charge: Charge::Itself, add: ours::add_tojson };

/// Jinja's tests.
pub(super) const TESTS: &[Callable] = callables!(add_test:
    "boolean" Kind tests::is_boolean,
    "callable" Kind is_callable,
    "defined" Kind tests::is_defined,
    "divisibleby" Read ours::divisible,
    "escaped" Kind tests::is_safe,
    "even" Kind tests::is_even,
    "false" Kind tests::is_false,
    "filter" Read tests::is_filter,
    "float" Kind tests::is_float,
    "in" Within tests::is_in,
    "integer" Kind tests::is_integer,
    "iterable" Kind is_iterable,
    "lower" Case tests::is_lower,
    "mapping" Kind tests::is_mapping,
    "none" Kind tests::is_none,
    "number" Kind tests::is_number,
    "odd" Kind tests::is_odd,
    "sameas" Read tests::is_sameas,
    "sequence" Kind is_sequence,
    "string" Kind tests::is_string,
    "test" Read tests::is_test,
    "true" Kind tests::is_true,
    "undefined" Kind tests::is_undefined,
    "upper" Case tests::is_upper,
    "eq" Read tests::is_eq,
    "equalto" Read tests::is_eq,
    "==" Read tests::is_eq,
    "ne" Read tests::is_ne,
    "!=" Read tests::is_ne,
    "lt" Read tests::is_lt,
    "lessthan" Read tests::is_lt,
    "<" Read tests::is_lt,
    "le" Read tests::is_le,
    "<=" Read tests::is_le,
    "gt" Read tests::is_gt,
    "greaterthan" Read tests::is_gt,
    ">" Read tests::is_gt,
    "ge" Read tests::is_ge,
    ">=" Read tests::is_ge,
);

/// Functions. A template may call them by other names, so those of ours count by themselves.
pub(super) const FUNCTIONS: &[Callable] = callables!(add_function:
    "dict" Copy functions::dict,
    "namespace" Copy namespace,
    "raise_exception" Copy ours::raise_exception,
);

/// The functions that count what they make by themselves.
pub(super) const COUNTING: &[Callable] = &[
    Callable { name: "range", charge: Charge::Itself, add: ours::add_range },
    Callable { name: "strftime_now", charge: Charge::Itself, add: ours::add_strftime_now },
];

/// Adds all of them.
pub(super) fn add(environment: &mut Environment, budget: &Arc<Budget>) {
    let all = FILTERS.iter().chain([TOJSON]).chain(TESTS).chain(FUNCTIONS).chain(COUNTING);
    all.for_each(|callable| (callable.add)(environment, callable.name, budget));
}

/// The charge of a filter (`|name`), a test (`?name`) or a method (`.name`); `None` for others.
pub(super) fn charge(what: &str) -> Option<Charge> {
    let (kind, name) = what.split_at_checked(1)?;
    let of = |rows: &[Callable]| rows.iter().find(|row| row.name == name).map(|row| row.charge);
    match kind {
        "|" if name == TOJSON.name => Some(TOJSON.charge),
        "|" => of(FILTERS),
        "?" => of(TESTS),
        "." => METHODS.iter().find(|method| method.name == name).map(|method| method.charge),
        _ => None,
    }
}

/// In Jinja whatever has a length and can be indexed is a sequence.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
}

/// In Jinja whatever has elements is iterable.
fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), Seq | Map | String | Iterable | Undefined)
}

/// Python's `callable`. Jinja's undefined value has a method for calls, which raises an error.
fn is_callable(value: &Value) -> bool {
    let named = |object: &minijinja::value::DynObject| {
        ["::Macro", "::BoxedFunction"].iter().any(|name| object.type_name().ends_with(name))
    };
    value.is_undefined() || is_loop(value) || value.as_object().is_some_and(named)
}

/// A namespace that is small, because the engine counts its attributes at every condition.
fn namespace(of: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let mut of = of.0.into_iter();
    let made = functions::namespace(of.next())?;
    let few = of.next().is_none() && elements(&made) <= ATTRIBUTES;
    if few { Ok(made) } else { Err(refused(MANY_ATTRIBUTES)) }
}
