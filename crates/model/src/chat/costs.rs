//! Every filter, test, function, method and operator with its work, against its charge.
//!
//! Our own callables count the characters and elements that they touch. The work of the engine's
//! stands here as its source has it. Each is rendered at two sizes, and the charge must pay for the
//! work at both: a unit for 64 characters or for one element.

use std::sync::Arc;

use minijinja::machinery::Instruction;
use serde_json::{Map, Value, json};

use super::callables::{COUNTING, FILTERS, FUNCTIONS, TESTS, TOJSON};
use super::compile::OPERATORS;
use super::limits::Budget;
use super::methods::{METHODS, On};
use super::text::TOUCHED;
use super::{ChatError, environment, evaluated, shape, strftime};

/// What a callable touches at the size n.
enum Work {
    /// Ours: as it counts itself, which is n or more.
    Own,
    /// Ours: as it counts itself, which does not depend on n.
    OwnFew,
    /// The engine's: it does not depend on n.
    Few,
    /// The engine's: each operand is read a few times.
    Linear,
    /// The engine's: n elements are compared 20 times each.
    Sorted,
    /// The engine's: n times n.
    Square,
}
use Work::{Few, Linear, Own, OwnFew, Sorted, Square};

/// Filters, by name. `s` and `t` are long texts without a common character but the last of `t`, `w`
/// has words, `l` is a list of short texts, `g` has one long text among short ones, `m` is a
/// mapping, `k` is a list of small mappings, `i` is n.
const OF_FILTERS: &[(&str, &str, Work)] = &[
    ("abs", "-i | abs", Few),
    ("attr", "m | attr(s)", Linear),
    ("batch", "l | batch(3)", Linear),
    ("batch", "['x'] | batch(i, 'y')", Linear),
    ("capitalize", "s | capitalize", Own),
    ("center", "s | center(9)", Own),
    ("count", "s | count", Own),
    ("d", "l | d(s)", Few),
    ("default", "l | default(s)", Few),
    // `safe_sort` of pairs, whose keys are compared in small letters.
    ("dictsort", "m | dictsort", Sorted),
    ("dictsort", "{s: 1, 'b': 2, 'c': 3} | dictsort", Linear),
    ("e", "s | e", Own),
    ("escape", "s | escape", Own),
    ("first", "l | first", Few),
    ("first", "m | first", Few),
    ("float", "s | float", Own),
    ("format", "'%s' | format(s)", Own),
    ("groupby", "k | groupby('a')", Sorted),
    ("indent", "w.replace(' ', '\\n') | indent", Own),
    ("int", "s | int", Own),
    ("items", "m | items", Linear),
    ("join", "l | join('x')", Linear),
    ("join", "l | join(s)", Square),
    ("last", "l | last", Few),
    ("length", "s | length", Own),
    ("length", "m | length", Few),
    ("list", "s | list", Linear),
    ("lower", "s | lower", Linear),
    ("map", "l | map('upper')", Linear),
    ("map", "[s] | map('list')", Linear),
    ("map", "l | map('trim', s)", Own),
    ("map", "k | map(attribute='a')", Linear),
    // Small letters of both are made for each comparison.
    ("max", "g | max", Square),
    ("max", "l | max", Linear),
    ("min", "g | min", Square),
    ("pprint", "l | pprint", Linear),
    ("reject", "l | reject('in', l)", Square),
    ("rejectattr", "k | rejectattr('a')", Linear),
    ("replace", "s | replace('x', 'yy')", Own),
    ("replace", "s | replace(t, '')", Own),
    ("reverse", "s | reverse", Linear),
    ("reverse", "l | reverse", Linear),
    ("round", "i | round", Few),
    ("safe", "s | safe", Linear),
    ("select", "l | select('in', l)", Square),
    ("select", "l | select('eq', s)", Linear),
    ("selectattr", "k | selectattr('a', 'in', l)", Square),
    ("slice", "l | slice(3)", Linear),
    ("slice", "['x'] | slice(i)", Linear),
    ("sort", "l | sort", Sorted),
    ("sort", "g | sort", Square),
    ("sort", "k | sort(attribute='a,b')", Sorted),
    ("string", "[1.5] | string", OwnFew),
    ("string", "(k + [1.5]) | string", Own),
    ("sum", "(m | list | map('length')) | sum", Linear),
    ("title", "s | title", Linear),
    ("tojson", "l | tojson", Own),
    ("tojson", "s | tojson", Own),
    ("trim", "s | trim", OwnFew),
    ("trim", "(' ' * i) | trim", Own),
    ("trim", "s | trim(t)", Own),
    ("truncate", "s | truncate(9)", Own),
    ("unique", "l | unique", Sorted),
    ("upper", "s | upper", Linear),
    ("urlencode", "s | urlencode", Own),
    ("urlencode", "m | urlencode", Own),
    ("wordcount", "w | wordcount", Own),
];

const OF_TESTS: &[(&str, &str, Work)] = &[
    ("boolean", "s is boolean", Few),
    ("callable", "m is callable", OwnFew),
    ("defined", "s is defined", Few),
    ("divisibleby", "i is divisibleby 3", OwnFew),
    ("escaped", "s is escaped", Few),
    ("even", "i is even", Few),
    ("false", "m is false", Few),
    ("filter", "s is filter", Linear),
    ("float", "s is float", Few),
    ("in", "s is in l", Linear),
    ("in", "t is in s", Linear),
    ("in", "g is in [g, g]", Linear),
    ("integer", "s is integer", Few),
    ("iterable", "l is iterable", OwnFew),
    ("lower", "s is lower", Linear),
    ("mapping", "m is mapping", Few),
    ("none", "s is none", Few),
    ("number", "s is number", Few),
    ("odd", "i is odd", Few),
    ("sameas", "l is sameas l", Linear),
    ("sequence", "l is sequence", OwnFew),
    ("string", "s is string", Few),
    ("test", "s is test", Linear),
    ("true", "m is true", Few),
    ("undefined", "s is undefined", Few),
    ("upper", "s is upper", Linear),
    ("eq", "l is eq(l + [])", Linear),
    ("equalto", "s is equalto t", Linear),
    ("==", "[s] | select('==', t)", Linear),
    ("ne", "l is ne(l + [])", Linear),
    ("!=", "[s] | select('!=', t)", Linear),
    ("lt", "l is lt(l + [])", Linear),
    ("lessthan", "s is lessthan t", Linear),
    ("<", "[s] | select('<', t)", Linear),
    ("le", "l is le(l + [])", Linear),
    ("<=", "[s] | select('<=', t)", Linear),
    ("gt", "l is gt(l + [])", Linear),
    ("greaterthan", "s is greaterthan t", Linear),
    (">", "[s] | select('>', t)", Linear),
    ("ge", "l is ge(l + [])", Linear),
    (">=", "[s] | select('>=', t)", Linear),
];

const OF_FUNCTIONS: &[(&str, &str, Work)] = &[
    ("dict", "dict(m)", Linear),
    ("namespace", "namespace(a=l)", Few),
    ("raise_exception", "raise_exception('a') if false", OwnFew),
    ("range", "range(i)", Own),
    ("strftime_now", "strftime_now(s)", Own),
];

const OF_TEXTS: &[(&str, &str, Work)] = &[
    ("strip", "s.strip(t)", Own),
    ("strip", "(' ' * i).strip()", Own),
    ("lstrip", "s.lstrip(t)", Own),
    ("rstrip", "s.rstrip(t)", Own),
    ("removeprefix", "s.removeprefix(s)", Own),
    ("removesuffix", "s.removesuffix(s)", Own),
    ("split", "w.split()", Own),
    ("split", "w.split(' ')", Own),
    ("split", "s.split(t)", Own),
    ("rsplit", "w.rsplit()", Own),
    ("splitlines", "w.replace(' ', '\\n').splitlines()", Own),
    ("partition", "s.partition(t)", Own),
    ("rpartition", "s.rpartition(t)", Own),
    ("ljust", "s.ljust(9)", Own),
    ("rjust", "s.rjust(9)", Own),
    ("center", "s.center(9)", Own),
    ("zfill", "s.zfill(9)", Own),
    ("title", "s.title()", Own),
    ("find", "s.find(t)", Own),
    ("find", "s.find('', i, i)", Own),
    ("rfind", "s.rfind(t)", Own),
    ("index", "s.index('x', 1)", Own),
    ("rindex", "s.rindex('x')", Own),
    ("count", "s.count('x')", Own),
    ("isspace", "(' ' * i).isspace()", Own),
    ("upper", "s.upper()", Linear),
    ("lower", "s.lower()", Linear),
    ("capitalize", "s.capitalize()", Linear),
    ("islower", "s.islower()", Linear),
    ("isupper", "s.isupper()", Linear),
    ("isdigit", "('1' * i).isdigit()", Linear),
    ("isnumeric", "('1' * i).isnumeric()", Linear),
    ("isalnum", "s.isalnum()", Linear),
    ("isalpha", "s.isalpha()", Linear),
    ("isascii", "s.isascii()", Linear),
    ("startswith", "s.startswith(s)", Linear),
    ("endswith", "s.endswith((s, s))", Linear),
    ("replace", "s.replace('x', 'yy')", Linear),
    ("format", "'{}'.format(s)", Linear),
    ("join", "s.join(l)", Square),
    ("join", "'x'.join(l)", Linear),
];

const OF_MAPS: &[(&str, &str, Work)] = &[
    ("keys", "m.keys()", Linear),
    ("values", "m.values()", Linear),
    ("items", "m.items()", Linear),
    ("get", "m.get(s)", Linear),
];

const OF_LISTS: &[(&str, &str, Work)] = &[("count", "l.count(s)", Linear), ("index", "(l + ['z']).index('z')", Own)];

const OF_OPERATORS: &[(&str, &str, Work)] = &[
    ("+", "s + t", Linear),
    ("+", "l + l", Linear),
    ("*", "'ab' * i", Linear),
    ("*", "l * 3", Linear),
    ("%", "'%s' % s", Own),
    ("~", "s ~ l", Linear),
    ("==", "l == (l + [])", Linear),
    ("in", "t in s", Linear),
    ("in", "s in l", Linear),
    ("[]", "s[i - 1]", Linear),
    ("[]", "m[s]", Linear),
    ("[:]", "s[1:]", Linear),
    ("[:]", "l[::-1]", Linear),
    ("set", "ns", Few),
    ("[", "{s: l}", Linear),
    ("for", "s", Few),
];

/// The variables at the size n.
fn variables(n: u64) -> Map<String, Value> {
    let few = |letter: &str| -> Vec<String> { (0..n).map(|at| format!("{letter}{}", at % 10)).collect() };
    let long = "x".repeat(n as usize);
    Map::from_iter([
        ("t".into(), ("y".repeat(n as usize - 1) + "x").into()),
        ("w".into(), "x ".repeat(n as usize / 2).into()),
        ("l".into(), few("a").into()),
        ("g".into(), [vec![long.clone()], few("a")].concat().into()),
        ("m".into(), (0..n).map(|at| (format!("k{at}"), Value::from(at))).collect::<Map<_, _>>().into()),
        ("k".into(), (0..n).map(|at| json!({ "a": at % 100, "b": 1 })).collect()),
        ("s".into(), long.into()),
        ("i".into(), n.into()),
        (strftime::NOW.into(), 0.into()),
    ])
}

/// What is wrong with a row at one size.
fn wrong(label: &str, template: &str, work: &Work, n: u64, variables: &Map<String, Value>) -> Option<String> {
    // A row sees the variables that it names.
    let seen =
        |name: &str| template.split(|c: char| !c.is_alphanumeric()).any(|word| word == name) || name == strftime::NOW;
    let context: Map<String, Value> =
        variables.iter().filter(|(name, _)| seen(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    let budget = Arc::new(Budget::default());
    TOUCHED.set(0);
    let ended = evaluated(template, &context, &budget);
    let (touched, charged) = (TOUCHED.get(), 64 * budget.worked());
    match ended {
        // At the larger size a callable may be refused, if its work would pass the limit.
        Err(ChatError::Limit { .. }) if n > 1000 => return None,
        Err(error) => return Some(format!("{label}: {template}: {error}")),
        Ok(_) => {}
    }
    let (least, touched) = match work {
        Own => (n, touched),
        OwnFew => (0, touched),
        Few => (0, 0),
        Linear => (0, n),
        Sorted => (0, 20 * n),
        Square => (0, n * n),
    };
    let paid = touched >= least && touched <= charged.saturating_mul(2) + 1024;
    (!paid).then(|| format!("{label}, {n}: {template} touches {touched} and is charged {charged}"))
}

fn check(kind: &str, known: &[&str], rows: &[(&str, &str, Work)], template: impl Fn(&str) -> String) {
    let sizes = [1000, 64_000].map(|n| (n, variables(n)));
    let mut all: Vec<String> = vec![];
    all.extend(
        known
            .iter()
            .filter(|name| rows.iter().all(|row| row.0 != **name))
            .map(|name| format!("{kind} {name} has no row")),
    );
    all.extend(
        rows.iter()
            .filter(|row| !known.contains(&row.0))
            .map(|row| format!("{kind} {} is not known to the engine", row.0)),
    );
    for (name, expression, work) in rows {
        assert!(
            expression.contains(name) || kind == "operator" || kind == "printing",
            "{expression} does not use {name}"
        );
        let row = |(n, variables): &(u64, Map<String, Value>)| {
            wrong(&format!("{kind} {name}"), &template(expression), work, *n, variables)
        };
        all.extend(sizes.iter().filter_map(row));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

fn assigned(expression: &str) -> String {
    format!("{{% set r = {expression} %}}")
}

fn names(of: &[super::callables::Callable]) -> Vec<&'static str> {
    of.iter().map(|callable| callable.name).collect()
}

#[test]
fn every_filter_is_charged_for_what_it_touches() {
    check("filter", &[names(FILTERS), vec![TOJSON.name]].concat(), OF_FILTERS, assigned);
}

#[test]
fn every_test_is_charged_for_what_it_touches() {
    check("test", &names(TESTS), OF_TESTS, assigned);
}

#[test]
fn every_function_is_charged_for_what_it_touches() {
    check("function", &[names(FUNCTIONS), names(COUNTING)].concat(), OF_FUNCTIONS, assigned);
}

#[test]
fn every_method_is_charged_for_what_it_touches() {
    let of = |on: On| METHODS.iter().filter(|method| method.on == on).map(|method| method.name).collect::<Vec<_>>();
    check("method of texts", &of(On::Text), OF_TEXTS, assigned);
    check("method of mappings", &of(On::Map), OF_MAPS, assigned);
    check("method of lists", &of(On::List), OF_LISTS, assigned);
}

#[test]
fn every_operator_is_charged_for_what_it_touches() {
    check("operator", &OPERATORS, OF_OPERATORS, |expression| match expression {
        "ns" => "{% set ns = namespace() %}{% set ns.a = l %}".into(),
        "s" => "{% for c in s %}{% endfor %}".into(),
        other => assigned(other),
    });
    check("printing", &["value"], &[("value", "k + [1.5]", Own), ("value", "s", Few)], |expression| {
        format!("{{{{ {expression} }}}}")
    });
    for (name, expression, _) in OF_OPERATORS.iter().filter(|row| !["set", "for"].contains(&row.0)) {
        let (source, syntax) = (assigned(expression), environment::syntax().unwrap());
        let code = super::compile::compile("chat", &source, &syntax).unwrap();
        let mut instructions = (0..).map_while(|at| code.get(at));
        let named = |instruction: &Instruction| matches!(instruction, Instruction::LoadConst(value) if value.as_str() == Some(name));
        assert!(instructions.any(named), "{expression} has no {name}");
    }
}

#[test]
fn long_names_are_refused_before_they_are_looked_up() {
    let syntax = environment::syntax().unwrap();
    let long = format!("{{{{ a.{} }}}}", "b".repeat(257));
    assert!(shape::check(&long, &syntax).unwrap_err().to_string().contains("256 bytes"));
    assert!(shape::check(&long.replacen('b', "", 1), &syntax).is_ok());
}
