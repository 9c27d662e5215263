//! Templates drawn from grammars of Jinja and of Go templates, the same on every run: each renders
//! or is refused within its limits of memory. `fuzz/` draws from the same grammars.

#[path = "../common/counting.rs"]
mod counting;
mod draw;

use counting::Counting;
use draw::{Draw, tokenizer};
use model::chat::{ChatTemplate, Message, RenderOptions};
use model::ollama::jinja;
use model::tokenizer::Tokenizer;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static HEAP: Counting = Counting::new();

/// Templates of each grammar.
const DRAWN: usize = 3000;
/// Bytes that a rendering may hold at once: 64 MiB of values, of which the last may stand there
/// twice while it is made, and 16 MiB of output.
const MOST_BYTES: usize = 160 << 20;

/// What is held is counted for the whole process, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Renders within memory, and leaves nothing there. Returns whether the template was rendered to
/// its end, and the most bytes.
fn taken(tokenizer: &Tokenizer, source: &str) -> (bool, usize) {
    let messages = [Message::user("hello a b"), Message::assistant("a")];
    let options = RenderOptions::default().tools(json!([{ "a": { "b": [1, "é"] } }]));
    let render = || ChatTemplate::new(source, tokenizer).render(&messages, &options).map(|text| text.len());
    let before = HEAP.live_bytes();
    let (rendered, most) = HEAP.most_during(render);
    assert!(most <= MOST_BYTES, "{most} bytes, {:?}: {source}", rendered.err());
    let rendered = rendered.is_ok_and(|length| length <= 16 << 20);
    // Tables of the engine are made once, and threads of the test's own harness take memory at any
    // time. What a circle of values holds stays each time.
    let flat = || {
        let before = HEAP.live_bytes();
        let _ = render();
        HEAP.live_bytes() == before
    };
    assert!(HEAP.live_bytes() == before || (0..4).any(|_| flat()), "bytes stay: {source}");
    (rendered, most)
}

#[test]
fn drawn_jinja_is_rendered_or_refused() {
    let _alone = alone();
    let (mut draw, tokenizer) = (Draw::Numbers(0x9E37_79B9_7F4A_7C15), tokenizer());
    let rendered = (0..DRAWN).filter(|_| taken(&tokenizer, &draw.jinja(3)).0).count();
    println!("{rendered} of {DRAWN}");
    assert!((DRAWN / 50..DRAWN - DRAWN / 10).contains(&rendered), "{rendered} of {DRAWN}");
}

#[test]
fn drawn_go_templates_are_rendered_or_refused() {
    let _alone = alone();
    let (mut draw, tokenizer) = (Draw::Numbers(0x2545_F491_4F6C_DD1D), tokenizer());
    let drawn = (0..DRAWN).map(|_| draw.go(4, false));
    let understood: Vec<String> = drawn.filter_map(|go| jinja(&go).ok()).collect();
    let rendered = understood.iter().filter(|jinja| taken(&tokenizer, jinja).0).count();
    println!("{rendered} of {} of {DRAWN}", understood.len());
    assert!(understood.len() > DRAWN / 4 && rendered > DRAWN / 20, "{rendered} of {} of {DRAWN}", understood.len());
}

/// Templates that would hold a gibibyte or more without their budget. `s` has a mebibyte.
const GREEDY: [&str; 10] = [
    "{% for i in range(12) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "{% for i in range(99) %}{% set ns.l = ns.l + [s | list] %}{% endfor %}",
    "{% for i in range(99) %}{% set ns.l = ns.l + [s.split('x')] %}{% endfor %}",
    "{% for i in range(99) %}{% set ns.l = ns.l + [s | batch(1)] %}{% endfor %}",
    "{% for i in range(99) %}{% set ns.l = ns.l + [range(99999)] %}{% endfor %}",
    "{% for i in range(999) %}{% set ns.l = ns.l + [s.upper() ~ i] %}{% endfor %}",
    "{% set ns.s = s[:33000] | join(s[:33000]) %}",
    "{% set ns.s = s.replace('x', s[:1000]) %}",
    "{% set ns.s = [s] | replace('x', s[:1000]) %}",
    "{% for i in range(999) %}{{ s }}{% endfor %}",
];

/// A namespace within its own value would be a circle, which is never freed: a mebibyte each time.
#[test]
fn a_namespace_within_its_own_value_leaves_nothing_in_memory() {
    let _alone = alone();
    let tokenizer = tokenizer();
    for circle in ["[ns]", "{'k': ns}", "ns", "{'k': [ns]} ~ ''", "dict(k=ns)"] {
        let source = format!(
            "{{% set n = 1048576 %}}{{% set ns = namespace(s='x' * n) %}}{{% set ns.v = {circle} %}}{{{{ ns.v }}}}"
        );
        assert!(!taken(&tokenizer, &source).0, "{circle} is rendered");
    }
}

#[test]
fn greedy_templates_are_refused_within_memory() {
    let _alone = alone();
    let tokenizer = tokenizer();
    for greedy in GREEDY {
        let source =
            format!("{{% set n = 1048576 %}}{{% set s = 'x' * n %}}{{% set ns = namespace(s=s, l=[]) %}}{greedy}");
        let (rendered, most) = taken(&tokenizer, &source);
        println!("{} MiB: {greedy}", most >> 20);
        assert!(!rendered, "{greedy} is rendered");
    }
}
