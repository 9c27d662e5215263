//! Jinja as `transformers` sets it up.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::error::{ChatError, Raised};
use super::{json, strftime};

/// The variable in which `strftime_now` finds the time.
pub(super) const NOW: &str = "__now_unix_s";

/// Instructions that one rendering may take: thousands of messages, but no endless loop.
const FUEL: u64 = 20_000_000;

pub(super) fn compile(name: &'static str, source: &str) -> Result<Environment<'static>, ChatError> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(ChatError::from_syntax)?;
    environment.set_syntax(syntax);
    environment.set_unknown_method_callback(method);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_filter("tojson", tojson);
    // In Jinja whatever has a length and can be indexed is a sequence, and whatever has elements is iterable.
    environment.add_test("sequence", |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String));
    environment.add_test("iterable", |value: &Value| {
        use ValueKind::{Iterable, Map, Seq, String, Undefined};
        matches!(value.kind(), Seq | Map | String | Iterable | Undefined)
    });
    environment.add_template_owned(name, without_generation_tags(source)).map_err(ChatError::from_syntax)?;
    Ok(environment)
}

/// `{% generation %}` marks what the assistant said, for training masks. As a condition that always holds it keeps its
/// white-space control and changes nothing else.
fn without_generation_tags(source: &str) -> String {
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

/// Python's methods: minijinja-contrib's, and two that it lacks.
fn method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    match (method, value.as_str()) {
        ("removeprefix", Some(text)) => {
            let (prefix,): (&str,) = from_args(args)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        ("removesuffix", Some(text)) => {
            let (suffix,): (&str,) = from_args(args)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

fn strftime_now(state: &State, format: &str) -> Result<String, Error> {
    let now = state.lookup(NOW).and_then(|now| now.as_i64());
    now.map(|now| strftime::format(format, now))
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "this platform has no clock; pass now_unix_s"))
}

/// `json.dumps` with `ensure_ascii=False` as its default.
fn tojson(value: &Value, ensure_ascii: Option<bool>, kwargs: Kwargs) -> Result<String, Error> {
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
    let value = serde_json::to_value(value).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(json::dumps(&value, &style))
}
