//! Templates that would take all memory, all time or all of the stack: each is refused by a limit's
//! name, and in little time.

use model::chat::{ChatError, ChatTemplate, Message, RenderOptions};
use model::ollama::jinja;
use model::tokenizer::{Parts, Tokenizer};
use serde_json::json;
use std::time::Duration;

/// Time of one core within which a count ends every template. A test that waits for a core takes
/// longer, but no more time of the core.
const MOST_TIME: Duration = Duration::from_secs(2);

/// The time for which this thread has run.
#[cfg(unix)]
fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

pub fn tokenizer() -> Tokenizer {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    let tokens = tokens.iter().map(String::as_bytes).collect();
    Tokenizer::from_parts(&Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens,
        merges: Some(vec![]),
        ..Parts::default()
    })
    .unwrap()
}

fn render(source: &str) -> Result<String, ChatError> {
    let began = processor_time();
    let text = ChatTemplate::new(source, &tokenizer()).render(&[Message::user("hello")], &RenderOptions::default());
    let taken = processor_time() - began;
    let shown: String = source.chars().take(80).collect();
    println!("{taken:?} {shown} -> {}", text.as_ref().map_or_else(|e| e.to_string(), |t| format!("{} bytes", t.len())));
    assert!(taken < MOST_TIME, "{shown} took {taken:?} of a core");
    text
}

fn refused(source: &str, reason: &str) {
    let shown: String = source.chars().take(80).collect();
    let Err(error) = render(source) else { panic!("{shown} is rendered") };
    assert!(error.to_string().contains(reason), "{shown}: {error}");
}

#[test]
fn chains_and_nests_are_counted_before_the_engine_parses() {
    let many = 60_000;
    let chain = |link: &str| format!("{{{{ 1{} }}}}", link.repeat(many));
    let links = [
        " + 1",
        " ~ 1",
        " - 1",
        " * x",
        " ** x",
        " and 1",
        " or x",
        " == 1",
        " in x",
        " | trim",
        ".a",
        "[0]",
        "()",
        " is string",
    ];
    for link in links.into_iter().chain([" if x else 1", " is not string", " < 1", " | default(1)"]) {
        refused(&chain(link), "more than 64 nested");
    }
    for open in ["not ", "-", "(", "[", "{1: ", "f(", "x if x else ", "f(a=", "[1, "] {
        refused(&format!("{{{{ {}1 }}}}", open.repeat(many)), "more than 64 nested");
    }
    for tag in [
        "{% if x %}",
        "{% for a in b %}",
        "{% with %}",
        "{% macro m() %}",
        "{% set x %}",
        "{% filter trim %}",
        "{% call m() %}",
    ] {
        refused(&tag.repeat(many / 10), "more than 64 nested");
    }
    refused(&format!("{{% if x %}}{}{{% endif %}}", "{% elif y %}".repeat(many / 2)), "more than 64 nested");
    refused(&format!("{{% set {}x{} = 1 %}}", "(".repeat(many), ")".repeat(many)), "more than 64 nested");
    refused(&" ".repeat((1 << 20) + 1), "1 MiB of text");
}

#[test]
fn doubled_texts_and_lists_are_counted_in_bytes() {
    let times =
        |body: &str| format!("{{% set ns = namespace(s='x', l=[1]) %}}{{% for i in range(60) %}}{body}{{% endfor %}}");
    for body in [
        "{% set ns.s = ns.s ~ ns.s %}",
        "{% set ns.s = ns.s + ns.s %}",
        "{% set ns.s = ns.s * 2 %}",
        "{% set ns.s = ns.s.replace('x', 'xx') %}",
        "{% set ns.s = ns.s | replace('', 'xx') %}",
        "{% set ns.s = [ns.s, ns.s] | join %}",
        "{% set ns.s = (ns.s ~ 'y').join('xxx') %}",
        "{% set ns.s = (ns.s ~ 'y') | list | join('xxx') %}",
        "{% set ns.s = '%s%s' | format(ns.s, ns.s) %}",
        "{% set ns.s = '{}{}'.format(ns.s, ns.s) %}",
        "{% set ns.s = [ns.s, ns.s] ~ '' %}",
        "{% set ns.s = '%s%s' % (ns.s, ns.s) %}",
        "{% set ns.s = (ns.s ~ '\n') | indent(ns.s) ~ ns.s %}",
        "{% set ns.s = (ns.s ~ ',y').rsplit(sep=',')[0] ~ ns.s.title() %}",
        "{% set ns.s = ns.s ~ ns.s %}{% set ns.l = ns.s.split(sep='x') %}",
        "{% set ns.s = [ns.s, ns.s] | string %}",
        "{% set ns.s = [ns.s, ns.s] | tojson %}",
        "{% set ns.s = (ns.s ~ '\n') | indent(9999) ~ ns.s %}",
        "{% set ns.s = ns.s | escape ~ ns.s | upper %}",
        "{% set ns.s = [ns.s, ns.s] | sum(start='') if false else ns.s ~ ns.s %}",
        "{% set ns.l = ns.l + ns.l %}",
        "{% set ns.l = ns.l * 2 %}",
        "{% set ns.l = ns.l | batch(1, 1) | list + ns.l + ns.l %}",
    ] {
        let Err(error) = render(&times(body)) else { panic!("{body} is rendered") };
        let error = error.to_string();
        assert!(
            ["64 MiB of values", "8 million elements"].iter().any(|limit| error.contains(limit)),
            "{body}: {error}"
        );
    }
    refused(&times("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"), " MiB of ");
    refused(&times("{% macro m(s) %}{{ s }}{{ s }}{% endmacro %}{% set ns.s = m(ns.s) %}"), " MiB of ");
}

#[test]
fn values_that_nest_share_or_hold_themselves_are_counted() {
    let times = |body: &str, end: &str| {
        format!("{{% set ns = namespace(v=[1], n=none) %}}{{% for i in range(9999) %}}{body}{{% endfor %}}{end}")
    };
    for body in [
        "[ns.v]",
        "{'a': ns.v}",
        "(ns.v,)",
        "dict(a=ns.v)",
        "[ns.v][::-1]",
        "ns.v | batch(1) | list",
        "[ns.v] | map('list') | list",
    ] {
        refused(&times(&format!("{{% set ns.v = {body} %}}"), ""), "64 levels");
    }
    let shared = "{% set ns.v = [ns.v, ns.v] if i < 40 else ns.v %}";
    for end in [
        "{{ ns.v }}",
        "{{ ns.v == ns.v }}",
        "{{ ns.v | tojson }}",
        "{{ ns.v ~ '' }}",
        "{{ ns.v in [ns.v] }}",
        "{{ ns.v | string }}",
        "{{ [1] | sort }}",
    ] {
        refused(&times(shared, end), "8 million elements");
    }
    refused("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "a namespace within a value");
    refused("{% set ns = namespace() %}{% set ns.a = [{'b': ns}] %}{{ ns | tojson }}", "a namespace within a value");
    refused("{% set ns = namespace() %}{% set ns.a = {ns: 1} %}{{ ns | tojson }}", "a namespace within a value");
    refused(&times("{% for y in [ns.n] %}{% set ns.n = loop %}{% endfor %}", ""), "loop as a value");
    refused("{% for x in [1] %}{{ loop }}{% endfor %}", "loop as a value");
    // Slices and filters that wait for each other.
    assert!(render(&times("{% set ns.v = ns.v[0:] %}{% set ns.v = ns.v | map('string') %}", "{{ ns.v }}")).is_ok());
}

#[test]
fn widths_indents_and_endless_output_are_bounded() {
    refused("{{ [[1]] | tojson(indent=999999999) }}", "64 MiB of values");
    refused("{{ [[1]] | tojson(indent=18446744073709551615) }}", "64 MiB of values");
    refused("{{ 'a\nb' | indent(999999999) }}", "64 MiB of values");
    refused("{{ 'a' | indent(width=999999999, first=true) }}", "64 MiB of values");
    for pad in ["ljust(999999999)", "rjust(999999999, '.')", "center(999999999)", "zfill(999999999)"] {
        refused(&format!("{{{{ 'a'.{pad} }}}}"), "64 MiB of values");
    }
    refused("{{ 'a' | center(width=999999999) }}", "64 MiB of values");
    refused("{{ '%999999999d' % 1 }}", "wider than 4096");
    refused("{{ '%*d' % (999999999, 1) }}", "wider than 4096");
    refused("{{ '%999999999d' | format(1) }}", "wider than 4096");
    refused("{{ '{:>999999999}'.format(1) }}", "wider than 4096");
    refused("{{ '{:>{}}'.format(1, 999999999) }}", "wider than 4096");
    refused("{{ '%*d' | format(999999999, 1) }}", "wider than 4096");
    refused("{{ 'x' * 99999999 }}", "text multiplied by large numbers");
    refused("{{ ('x' * 9999) * 9999 }}", "text multiplied by large numbers");
    refused("{{ [1] * 99999999 }}", "text multiplied by large numbers");
    refused("{{ 'x' * (9999 ** 2) }}", "text multiplied by large numbers");
    refused("{{ ('x' * 2) * -(-99999999) }}", "text multiplied by large numbers");
    // The engine folds no product with a variable.
    assert_eq!(render("{% set n = 7 %}{{ ((n * 2.5) * n * 99) | round(2) }}").unwrap(), "12127.5");
    refused("{% set n = 99999999 %}{{ 'x' * n }}", "64 MiB of values");
    refused("{{ [1] | batch(999999999, 1) | list }}", "64 MiB of values");
    refused("{{ [1] | slice(999999999) | list }}", "64 MiB of values");
    refused("{{ ['x'] | map('indent', 999999999) | list }}", "map('indent')");
    let endless = |body: &str| {
        format!("{{% for a in range(99999) %}}{{% for b in range(99999) %}}{body}{{% endfor %}}{{% endfor %}}")
    };
    refused(&endless(&"x".repeat(1000)), "16 MiB of output");
    refused(&endless("{{ '' }}"), "takes more than");
    refused(&endless("{{ 'a' }}"), "takes more than");
    refused(&endless(""), "takes more than");
    refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion limit");
    refused("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "recursion limit");
    refused("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}", "8 million");
    refused("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}", "recursion limit");
    refused("{% include 'chat' %}", "include");
    refused("{{ debug() }}", "debug is unknown");
    // The engine panics on these.
    for (open, close) in
        [("with", "endwith"), ("set x", "endset"), ("filter trim", "endfilter"), ("macro m()", "endmacro")]
    {
        refused(
            &format!("{{% for x in [1] %}}{{% {open} %}}{{% break %}}{{% {close} %}}{{% endfor %}}"),
            "break or continue across",
        );
    }
    refused("{% for x in [] %}{% else %}{% break %}{% endfor %}", "break or continue across");
    assert_eq!(
        render("{% for x in [1, 2] %}{% if x %}{{ x }}{% break %}{% else %}{% continue %}{% endif %}{% endfor %}")
            .unwrap(),
        "1"
    );
    refused("{{ [1, 2][0:2:-1] }}", "runs backwards");
    assert_eq!(render("{{ ''[::-1] }}{{ [][::-1] }}{{ ''[5:1:-1] }}{{ [1, 2][::-1] }}").unwrap(), "[][2, 1]");
    refused("{% set r = range %}{{ r(0, 9223372036854775807) }}", "too many elements");
    assert_eq!(
        render("{{ range(9223372036854775807, -9223372036854775807, -9223372036854775807) | list }}{{ range(5, 0, -2) | list }}")
            .unwrap()
            .len(),
        33
    );
    assert_eq!(render("{{ 4 is divisibleby(0) }}{{ 4 is divisibleby(2) }}").unwrap(), "FalseTrue");
}

#[test]
fn the_slowest_of_what_is_counted_takes_little_time() {
    let text = "x".repeat(100_000);
    let heavy = format!("{{% set s = '{text}' %}}{{% set l = range(99999) %}}{{% for a in range(99999) %}}");
    for body in [
        "{% if s.find('xy') %}{% endif %}",
        "{% if 'xxy' in s %}{% endif %}",
        "{% if s == s ~ '' %}{% endif %}",
        "{% if s | trim %}{% endif %}",
        "{% if s[99999] %}{% endif %}",
        "{% if s[1:] %}{% endif %}",
        "{% if s.split('x') %}{% endif %}",
        "{% if s | sort %}{% endif %}",
        "{% if s | list | unique %}{% endif %}",
        "{% for c in s %}{% endfor %}",
        "{% if s is upper %}{% endif %}",
        "{% if l.count('x') %}{% endif %}",
        "{% if {s: 1} %}{% endif %}",
        "{% if {'k': 1}.get(s) %}{% endif %}",
        "{% if l | min %}{% endif %}",
        "{% if l | safe %}{% endif %}",
        "{% if s | max %}{% endif %}",
    ] {
        let Err(error) = render(&format!("{heavy}{body}{{% endfor %}}")) else { panic!("{body} is rendered") };
        assert!(matches!(error, ChatError::Limit { .. }), "{body}: {error}");
    }
    // Names are looked for in every frame.
    let deep = "{% with %}".repeat(55);
    let nested = format!(
        "{deep}{{% for a in range(99999) %}}{{% for a in range(99999) %}}{}{{% endfor %}}{{% endfor %}}{}",
        "{% if q %}{% endif %}".repeat(9),
        "{% endwith %}".repeat(55)
    );
    refused(&nested, "8 million instructions");
}

/// Each would take minutes: its work is a product, or does not depend on the instructions.
#[test]
fn work_that_is_no_sum_of_what_is_seen_takes_little_time() {
    for strip in ["|trim(c)", ".strip(c)", ".lstrip(c)", ".rstrip(c)"] {
        let text =
            render(&format!("{{% set n = 8000000 %}}{{% set c = 'y' * n ~ 'x' %}}{{{{ ('x' * n){strip} }}}}")).unwrap();
        assert_eq!(text, "", "{strip}");
    }
    refused(
        "{% set n = 1000000 %}{% set k = 99999 %}{% set l = ['z' * n] + ['a'] * k %}{{ l | max | length }}",
        "8 million elements",
    );
    refused(
        "{% set n = 1000000 %}{% set k = 99999 %}{% set l = ['z' * n] + ['a'] * k %}{{ l | min | length }}",
        "8 million elements",
    );
    let endless = |before: &str, body: &str| {
        format!("{before}{{% for a in range(99999) %}}{{% for b in range(99999) %}}{body}{{% endfor %}}{{% endfor %}}")
    };
    // The engine counts the attributes of a namespace to see whether it is true.
    let attributes = |count: usize| (0..count).map(|n| format!("a{n}=1")).collect::<Vec<_>>().join(",");
    refused(
        &endless(&format!("{{% set ns = namespace({}) %}}", attributes(33)), "{% if ns %}{% endif %}"),
        "more than 32 attributes",
    );
    let sets = (0..33).map(|n| format!("{{% set ns.a{n} = 1 %}}")).collect::<String>();
    refused(&format!("{{% set ns = namespace() %}}{sets}"), "more than 32 attributes");
    refused(
        &endless(&format!("{{% set ns = namespace({}) %}}", attributes(32)), "{% if ns %}{% endif %}"),
        "8 million instructions",
    );
    // Names are looked up by all of their letters.
    let long = "x".repeat(300_000);
    refused(
        &endless(&format!("{{% set {long} = 1 %}}"), &format!("{{% if {long} %}}{{% endif %}}")),
        "a name of more than 256 bytes",
    );
    refused(&endless("", &format!("{{% if messages.{long} %}}{{% endif %}}")), "a name of more than 256 bytes");
    // The lists of `chain`, which Jinja does not have, were asked for their lengths at every index.
    refused("{% set c = [1] | chain([2]) %}{{ c[-1] }}", "chain is unknown");
    // A group's list is made again whenever it is asked for.
    let groups = "{% set g = (range(9999) | batch(1) | list | groupby('x'))[0] %}";
    refused(&endless(groups, "{% if g.list | last %}{% endif %}"), "takes more than");
}

#[test]
fn go_templates_that_nest_are_refused_by_the_translator_or_by_their_jinja() {
    let many = 100_000;
    let deep = |open: &str, close: &str| {
        format!("{{{{ if {}.Prompt{} }}}}x{{{{ end }}}}", open.repeat(many), close.repeat(many))
    };
    for go in [deep("(", ")"), deep("(not ", ")"), deep("(and 1 ", ")"), deep("(eq ", " 1 2)")] {
        assert!(jinja(&go).unwrap_err().contains("64 parentheses"));
    }
    let eq = format!("{{{{ if {}.Prompt{} }}}}x{{{{ end }}}}", "(eq ".repeat(60), " 1 2)".repeat(60));
    assert!(jinja(&eq).is_err());
    let and = format!("{{{{ if and{} }}}}x{{{{ end }}}}", " .Prompt".repeat(many));
    let elses = format!("{{{{ if .Prompt }}}}x{}{{{{ end }}}}", "{{ else if .Prompt }}y".repeat(20_000));
    let ranges = format!("{}{}", "{{ range .Messages }}".repeat(10_000), "{{ end }}".repeat(10_000));
    for go in [and, elses, ranges] {
        let error = jinja(&go).map_or_else(
            |reason| reason,
            |source| ChatTemplate::new(&source, &tokenizer()).check().unwrap_err().to_string(),
        );
        assert!(error.contains("64 nested") || error.contains("1 MiB") || error.contains("not understood"), "{error}");
    }
    assert!(jinja(&"x".repeat((1 << 20) + 1)).unwrap_err().contains("1 MiB"));
}

/// Those of the tests, and every file of the folder that `WEFT_TEMPLATES` names.
#[test]
fn published_templates_stay_far_below_every_limit() {
    let long = "A paragraph of some length. ".repeat(40);
    let messages: Vec<Message> = (0..20)
        .flat_map(|_| {
            [Message::user(long.as_str()), Message::assistant(format!("<think>\n{long}\n</think>\n\n{long}"))]
        })
        .collect();
    let tool = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]}}});
    let options = RenderOptions::default().tools(json!([tool, tool, tool]));
    let mut sources = crate::published().map(|(name, source)| (name.to_owned(), source.to_owned())).to_vec();
    if let Some(folder) = std::env::var_os("WEFT_TEMPLATES") {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            sources.push((path.display().to_string(), std::fs::read_to_string(path).unwrap()));
        }
    }
    for (name, source) in &sources {
        let taken = ChatTemplate::new(source, &tokenizer())
            .taken(&messages, &options)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {taken:?}");
        assert!(taken.levels < 500, "{name}: {taken:?}");
        assert!(
            [taken.text, taken.values, taken.output, taken.work, taken.instructions].iter().all(|&part| part < 100),
            "{name}: {taken:?}"
        );
    }
}
