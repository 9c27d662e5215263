//! Jinja as `transformers` sets it up.

use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{Environment, Value, escape_formatter};

use super::compile::{CHECK, PERCENT, WHOLE};
use super::error::ChatError;
use super::limits::{Budget, INSTRUCTIONS};
use super::{callables, charge, methods, printf, python, size};

/// Frames of loops, blocks and macros at most; a macro takes about five.
const FRAMES: usize = 320;

/// How `transformers` reads tags.
pub(super) fn syntax() -> Result<SyntaxConfig, ChatError> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(ChatError::from_syntax)
}

/// The filters, tests and functions of one rendering, which take from its budget.
pub(super) fn environment<'s>(budget: &Arc<Budget>) -> Environment<'s> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(INSTRUCTIONS));
    environment.set_recursion_limit(FRAMES);
    environment.set_unknown_method_callback(methods::method);
    callables::add(&mut environment, budget);
    let own = Arc::clone(budget);
    environment.add_filter(CHECK, move |operands: Rest<ValueOrKwargs>| charge::check(&own, &operands.into_values()));
    environment.add_filter(PERCENT, |a: &Value, b: &Value| printf::percent(a, b));
    let own = Arc::clone(budget);
    environment.add_filter(WHOLE, move |value: Value| charge::whole(&own, value));
    let own = Arc::clone(budget);
    environment.set_formatter(move |out, state, value| {
        own.output(size::size(&own, value)?.bytes)?;
        escape_formatter(out, state, &python::text(value.clone()))
    });
    environment
}

/// `source` as Jinja reads it: every line ends in a line feed.
pub(super) fn with_line_feeds(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n")
}

/// `{% generation %}` marks what the assistant said, for training masks. As a condition that always
/// holds it keeps its white-space control and changes nothing else.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        out.push_str(&tag[..tag.len() - word.len()]);
        let end = word.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(word.len());
        out.push_str(match &word[..end] {
            "generation" => "if true",
            "endgeneration" => "endif",
            other => other,
        });
        rest = &word[end..];
    }
    out.push_str(rest);
    out
}
