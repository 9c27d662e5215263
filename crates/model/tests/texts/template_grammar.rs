//! Templates drawn from grammars of Jinja and of Go templates, the same on every run: each renders
//! or is refused in bounded time.

use crate::template_limits::tokenizer;
use model::chat::{ChatTemplate, Message, RenderOptions};
use model::ollama::jinja;
use serde_json::json;
use std::time::{Duration, Instant};

/// Templates of each grammar.
const DRAWN: usize = 3000;
/// More than the 2 s that a template may take: tests run beside each other.
const PATIENCE: Duration = Duration::from_secs(8);

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let (a, b) = (self.expression(depth - 1), self.leaf());
        match self.below(13) {
            0 | 1 => format!("{a} {} {b}", self.pick(&["+", "~", "*", "-", "/", "//", "%", "**", "==", "<", "in", "not in", "and", "or"])),
            2 => format!("({a}) {} ({b})", self.pick(&["+", "~", "*", "==", "<", "in"])),
            3 => format!("({a}) | {}", self.filter()),
            4 => format!("({a}).{}", self.method()),
            5 => format!("[{a}, {b}]"),
            6 => format!("{{'k': {a}, {b}: 1}}"),
            7 => format!("({a})[{b}]"),
            8 => format!(
                "({a})[{}]",
                self.pick(&["::-1", "1:", ":-1", "0:9:2", "5:1:-1", ":9223372036854775807", "::-9223372036854775808", "n:"])
            ),
            9 => format!("({a} if {b} else {a})"),
            10 => format!(
                "({a} is {})",
                self.pick(&["string", "defined", "eq(s)", "in(l)", "upper", "mapping", "sameas(ns)", "divisibleby(0)"])
            ),
            11 => format!(
                "{}({a})",
                self.pick(&["m", "namespace", "dict", "range", "loop", "caller", "strftime_now", "lipsum", "loop.cycle", "loop.changed"])
            ),
            _ => format!("namespace(a={a}, b={b})"),
        }
    }

    fn leaf(&mut self) -> String {
        let leaves = [
            "s",
            "l",
            "d",
            "n",
            "ns",
            "ns.s",
            "ns.l",
            "messages",
            "messages[0].content",
            "loop",
            "loop.index",
            "x",
            "'a'",
            "''",
            "'%s %9d'",
            "'{}'",
            "1",
            "0",
            "-1",
            "99999",
            "9223372036854775807",
            "-9223372036854775808",
            "170141183460469231731687303715884105727",
            "1.5",
            "none",
            "true",
            "[]",
            "{}",
            "()",
            "tools",
            "loop.previtem",
            "undefined_thing",
        ];
        self.pick(&leaves).to_string()
    }

    fn filter(&mut self) -> String {
        let names = [
            "tojson",
            "tojson(indent=n)",
            "join(s)",
            "join",
            "replace('a', s)",
            "replace('', 'xx')",
            "indent(n)",
            "batch(n, 1)",
            "slice(3)",
            "sort",
            "unique",
            "groupby('a')",
            "dictsort",
            "items",
            "map('upper')",
            "map(attribute='a.b')",
            "map('replace', 'a', 'b')",
            "select('eq', s)",
            "selectattr('a')",
            "sum",
            "list",
            "string",
            "reverse",
            "length",
            "first",
            "last",
            "min",
            "max",
            "trim",
            "title",
            "format(s, n)",
            "pprint",
            "lines",
            "split('a')",
            "zip(l)",
            "chain(l)",
            "round(n)",
            "abs",
            "int",
            "float",
            "escape",
            "safe",
            "default(s)",
            "attr('a')",
            "list | join(s)",
            "bool",
            "sum(start=s)",
            "sort(attribute='a')",
        ];
        self.pick(&names).to_string()
    }

    fn method(&mut self) -> String {
        let names = [
            "split('a')",
            "split()",
            "replace('a', s)",
            "join(l)",
            "strip()",
            "lstrip('a')",
            "format(n, s)",
            "items()",
            "keys()",
            "values()",
            "get('k')",
            "title()",
            "upper()",
            "find('a')",
            "rfind(s)",
            "count('a')",
            "splitlines()",
            "startswith(s)",
            "removeprefix('a')",
            "append(1)",
            "k",
            "a",
            "isdigit()",
        ];
        self.pick(&names).to_string()
    }

    fn statement(&mut self, depth: usize) -> String {
        let value = {
            let depth = self.below(4);
            self.expression(depth)
        };
        if depth == 0 {
            return format!("{{{{ {value} }}}}");
        }
        let body = self.statements(depth - 1);
        match self.below(13) {
            0 | 1 => format!("{{% for x in {value} %}}{body}{{% endfor %}}"),
            2 => format!("{{% for x in range(99) %}}{body}{{% endfor %}}"),
            3 => format!("{{% for x in {value} if x recursive %}}{{{{ loop([x]) }}}}{body}{{% else %}}e{{% endfor %}}"),
            4 => format!("{{% if {value} %}}{body}{{% elif s %}}b{{% else %}}{body}{{% endif %}}"),
            5 => format!("{{% set ns.{} = {value} %}}", self.pick(&["s", "l", "x"])),
            6 => format!("{{% set {} = {value} %}}", self.pick(&["s", "l", "d", "x", "a, b"])),
            7 => format!("{{% set {} %}}{body}{{% endset %}}", self.pick(&["s", "ns.s"])),
            8 => format!("{{% macro m(x, y=s) %}}{body}{}{{% endmacro %}}", self.pick(&["", "{{ m(x) }}", "{{ caller() }}"])),
            9 => format!("{{% call m({value}) %}}{body}{{% endcall %}}"),
            10 => format!("{{% filter {} %}}{body}{{% endfilter %}}", self.filter()),
            11 => format!("{{% with x = {value} %}}{body}{{% endwith %}}"),
            _ => format!(
                "{{{{ {value} }}}}text {}",
                self.pick(&["", "{% break %}", "{% include 'chat' %}", "{% block b %}{% endblock %}", "{{ debug() }}"])
            ),
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        (0..=self.below(3)).map(|_| self.statement(depth)).collect()
    }

    fn go_value(&mut self, depth: usize, inside: bool) -> String {
        let leaves: [&str; 8] = match inside {
            true => [".Content", ".Role", "$.Messages", ".ToolCalls", "$.Prompt", "\"a\"", "1", "true"],
            false => [".Prompt", ".System", ".Messages", ".Response", ".Tools", "\"a\"", "nil", "$.Think"],
        };
        let leaf = self.pick(&leaves);
        if depth == 0 {
            return leaf.to_string();
        }
        let inner = self.go_value(depth - 1, inside);
        match self.below(4) {
            0 => format!("({} {inner})", self.pick(&["not", "len", "json"])),
            1 => format!("(index {inner} 0)"),
            2 => format!("(slice {inner} 1)"),
            _ => format!("({} {inner} {leaf})", self.pick(&["and", "or", "eq", "ne", "lt", "eq 1"])),
        }
    }

    fn go(&mut self, depth: usize, inside: bool) -> String {
        let levels = self.below(5);
        let value = self.go_value(levels, inside);
        let kind = self.below(6);
        let inner = if depth == 0 { "t".to_string() } else { self.go(depth - 1, inside || kind == 0 || kind == 3) };
        match kind {
            0 => format!("{{{{ range $i, $m := $.Messages }}}}{inner}{{{{ end }}}}"),
            1 => format!("{{{{ if {value} }}}}{inner}{{{{ else if {value} }}}}b{{{{ else }}}}{inner}{{{{ end }}}}"),
            2 => format!("{{{{- $m := {value} -}}}}{inner}"),
            3 => format!("{{{{ range {value} }}}}{inner}{{{{ end }}}}"),
            _ => format!("{{{{ {value} }}}}{inner}"),
        }
    }
}

/// Renders; tells whether the template was rendered to its end.
fn taken(source: &str) -> bool {
    let messages = [Message::user("hello a b"), Message::assistant("a")];
    let options = RenderOptions::default().tools(json!([{ "a": { "b": [1, "é"] } }]));
    let began = Instant::now();
    let template = ChatTemplate::new(source, &tokenizer());
    let rendered = template.render(&messages, &options);
    assert!(began.elapsed() < PATIENCE, "{:?}: {source}", began.elapsed());
    rendered.is_ok_and(|text| text.len() <= 16 << 20)
}

#[test]
fn drawn_jinja_is_rendered_or_refused() {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let start = "{% set ns = namespace(s='ab', l=[1, 'b']) %}{% set s = 'xay' %}{% set l = [1, [2], 'a'] %}{% set d = {'k': l} %}{% set n = 7 %}\
                 {% macro m(x) %}{{ x }}{% endmacro %}{% for y in range(50) %}";
    let rendered = (0..DRAWN).filter(|_| taken(&format!("{start}{}{{% endfor %}}", draw.statements(3)))).count();
    println!("{rendered} of {DRAWN}");
    assert!((DRAWN / 50..DRAWN - DRAWN / 10).contains(&rendered), "{rendered} of {DRAWN}");
}

#[test]
fn drawn_go_templates_are_rendered_or_refused() {
    let mut draw = Draw(0x2545_F491_4F6C_DD1D);
    let drawn = (0..DRAWN).map(|_| draw.go(4, false));
    let understood = drawn.filter_map(|go| jinja(&go).ok()).inspect(|jinja| assert!(taken(jinja) || !jinja.is_empty())).count();
    println!("{understood} of {DRAWN}");
    assert!(understood > DRAWN / 2, "{understood} of {DRAWN}");
}
