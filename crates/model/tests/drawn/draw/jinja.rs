//! A grammar of Jinja: what the engine knows, what it refuses, and values that strain its limits.

use super::Draw;

const OPERATORS: &str = "+ ~ * - / // % ** == != < <= > in not_in and or";
const LEAVES: &str = "s|l|d|n|ns|ns.s|ns.l|ns.n|messages|messages[0].content|messages[-1]['role']|loop|loop.index|loop.last|loop.length|x|x.a|\
                      '%s %9d'|'{}'|'{:>9}'|'%(k)s'|1|0|-1|99999|9223372036854775807|-9223372036854775808|\
                      170141183460469231731687303715884105727|1.5|1e-7|1e16|none|true|false|[]|{}|()|tools|tools[0]|loop.previtem|\
                      loop.nextitem|undefined_thing|m|caller|range|bos_token|add_generation_prompt|enable_thinking|s[0]|l[0]";
const FILTERS: &str = "tojson|tojson(indent=n)|tojson(ensure_ascii=true, sort_keys=true)|tojson(separators=(s, ':'))|join(s)|join|\
                       join(', ', attribute='a')|replace('a', s)|replace('', 'xx')|replace(s, '')|indent(n)|indent(s, true, blank=true)|\
                       batch(n, 1)|batch(2)|slice(3)|slice(n, 0)|sort|sort(reverse=true)|unique|unique(attribute='a')|groupby('a')|\
                       groupby('a', default=0)|dictsort|dictsort(by='value')|items|map('upper')|map(attribute='a.b')|\
                       map(attribute='a', default=s)|map('replace', 'a', 'b')|map('tojson')|map('list')|select('eq', s)|select|reject('in', l)|\
                       selectattr('a')|selectattr('role', 'equalto', s)|rejectattr('a', 'none')|sum|sum(attribute='a')|sum(start=s)|list|\
                       string|reverse|length|count|first|last|min|max|min(attribute='a')|trim|trim(s)|title|capitalize|lower|format(s, n)|\
                       format(k=s)|pprint|lines|split('a')|split|split('a', 1)|zip(l)|zip(l, s)|chain(l)|chain(l, l)|round(n)|\
                       round(1, 'floor')|abs|int|int(base=16)|float|escape|e|safe|default(s)|d(s, true)|attr('a')|bool|center(n)|\
                       center(99)|truncate(n)|truncate(3, true, s, 0)|sort(attribute='a')|sort(case_sensitive=true, attribute='a,b')|\
                       urlencode|wordcount|unknown_filter";
const METHODS: &str = "split('a')|split()|split(s, 1)|rsplit(sep=s, maxsplit=1)|replace('a', s)|replace(s, '', 1)|join(l)|strip()|strip(s)|\
                       lstrip('a')|rstrip()|format(n, s)|format(k=s)|items()|keys()|values()|get('k')|get(s, 1)|title()|upper()|lower()|\
                       capitalize()|find('a')|rfind(s)|count('a')|count(s)|splitlines()|splitlines(true)|startswith(s)|\
                       endswith(('a', s))|removeprefix('a')|removesuffix(s)|partition(s)|rpartition('a')|ljust(n)|rjust(99, '.')|center(n)|\
                       zfill(n)|append(1)|pop()|k|a|isdigit()|isalpha()|isspace()|isupper()|isascii()|index(1)|encode()";
const TESTS: &str = "string|defined|undefined|none|eq(s)|ne(l)|lt(n)|in(l)|in(s)|upper|lower|mapping|sequence|iterable|number|integer|float|\
                     boolean|odd|even|sameas(ns)|divisibleby(0)|divisibleby(n)|startingwith(s)|endingwith('a')|true|false|safe|filter|test";
const SLICES: &str = "::-1|1:|:-1|0:9:2|5:1:-1|:9223372036854775807|::-9223372036854775808|n:|-n:|s:|none:n|1:-1:3";
const FUNCTIONS: &str = "m|namespace|dict|range|loop|caller|strftime_now|lipsum|loop.cycle|loop.changed|raise_exception|range|cycler|joiner";
const TARGETS: &str = "s|l|d|x|n|a, b|ns.s|ns.l|ns.n";
/// What stands by itself.
const SINGLE: &str = "|{% break %}|{% continue %}|{% include 'chat' %}|{% block b %}{% endblock %}|{{ debug() }}|{% extends s %}|{# c #}|\
                      {%- raw -%}{{ x }}{% endraw %}|{% import 'chat' as c %}|{% autoescape true %}{{ s }}{% endautoescape %}|{% do m(1) %}|\
                      {% generation %}g{% endgeneration %}|{{ m(*l) }}|{{ dict(**d) }}|{{";

/// A text as Jinja quotes it.
fn quoted(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_string(),
        '\'' => "\\'".to_string(),
        '\n' => "\\n".to_string(),
        c => c.to_string(),
    };
    format!("'{}'", text.chars().map(escape).collect::<String>())
}

impl Draw<'_> {
    fn leaf(&mut self) -> String {
        if self.below(6) == 1 { quoted(&self.text()) } else { self.pick(LEAVES, "|").to_string() }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let a = self.expression(depth - 1);
        let b = if depth > 1 && self.below(6) == 1 { self.expression(depth - 1) } else { self.leaf() };
        match self.below(14) {
            0 | 1 => format!("{a} {} {b}", self.pick(OPERATORS, " ").replace('_', " ")),
            2 => format!("({a}) {} ({b})", self.pick("+ ~ * == < in", " ")),
            3 => format!("({a}) | {}", self.pick(FILTERS, "|")),
            4 => format!("({a}).{}", self.pick(METHODS, "|")),
            5 => format!("[{a}, {b}]"),
            6 => format!("{{'k': {a}, {b}: 1}}"),
            7 => format!("({a})[{b}]"),
            8 => format!("({a})[{}]", self.pick(SLICES, "|")),
            9 => format!("({a} if {b} else {a})"),
            10 => format!("({a} is {}{})", self.pick("|not ", "|"), self.pick(TESTS, "|")),
            11 => format!("{}({a})", self.pick(FUNCTIONS, "|")),
            12 => format!("{}({a}, {b}, k={a})", self.pick(FUNCTIONS, "|")),
            _ => format!("{}(a={a}, b={b})", self.pick("namespace|dict|m", "|")),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        let levels = self.below(4);
        let value = self.expression(levels);
        if depth == 0 {
            return format!("{{{{ {value} }}}}");
        }
        let body = self.statements(depth - 1);
        let [open, close] = [self.pick("{%|{%-|{%+", "|"), self.pick("%}|-%}", "|")];
        match self.below(14) {
            0 | 1 => format!("{open} for x in {value} {close}{body}{{% endfor %}}"),
            2 => format!("{{% for x in range({}) %}}{body}{{% endfor %}}", self.pick("2|3|2|99", "|")),
            3 => format!("{{% for x in {value} if x recursive %}}{{{{ loop([x]) }}}}{body}{{% else %}}e{{% endfor %}}"),
            4 => format!("{open} if {value} {close}{body}{{% elif s %}}b{{% else %}}{body}{{% endif %}}"),
            5 => format!("{{% set ns.{} = {value} %}}", self.pick("s|l|x|n", "|")),
            6 => format!("{open} set {} = {value} {close}", self.pick(TARGETS, "|")),
            7 => format!("{{% set {} {close}{body}{open} endset %}}", self.pick("s;ns.s;x | trim;l", ";")),
            8 => format!(
                "{{% macro m(x, y=s) %}}{body}{}{{% endmacro %}}",
                self.pick("|{{ m(x) }}|{{ caller() }}|{{ caller(x) }}", "|")
            ),
            9 => format!("{{% call{} m({value}) %}}{body}{{% endcall %}}", self.pick("|(x)|(x, y=1)", "|")),
            10 => format!("{{% filter {} %}}{body}{{% endfilter %}}", self.pick(FILTERS, "|")),
            11 => format!("{{% with x = {value} %}}{body}{{% endwith %}}"),
            12 => format!("{{% for k, x in {value} {close}{body}{open} endfor %}}"),
            _ => format!("{{{{ {value} }}}}{}{}", self.text().replace(['{', '}'], ""), self.pick(SINGLE, "|")),
        }
    }

    fn statements(&mut self, depth: usize) -> String {
        (0..=self.below(3)).map(|_| self.statement(depth)).collect()
    }

    /// A template whose variables have values, drawn inside a loop, so that sizes multiply.
    pub fn jinja(&mut self, depth: usize) -> String {
        let start = "{% set ns = namespace(s='ab', l=[1, 'b'], n=2) %}{% set s = 'xay' %}{% set l = [1, [2], 'a'] %}{% set d = {'k': l} %}\
                     {% set n = 7 %}{% macro m(x) %}{{ x }}{% endmacro %}";
        let [times, drawn] = [self.pick("1|2|1|50", "|").to_string(), self.statements(depth)];
        format!("{start}{{% for y in range({times}) %}}{drawn}{{% endfor %}}")
    }
}
