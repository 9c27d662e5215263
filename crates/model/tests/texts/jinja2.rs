//! Expressions with the text that Python's jinja2 3.1.6 gives for them, set up as transformers
//! does. A file has values, then each template with its text, or with null and the error.

use crate::template_limits::tokenizer;
use model::chat::{ChatTemplate, RenderOptions};
use serde_json::{Map, Value};

/// Renders the templates of a file and compares their texts with Python's.
fn compare(file: &str) {
    let all: Value = serde_json::from_str(file).unwrap();
    let options = RenderOptions::default().extra(all["values"].as_object().cloned().unwrap_or_else(Map::new));
    let tokenizer = tokenizer();
    let mut different = vec![];
    for case in all["cases"].as_array().unwrap() {
        let source = case[0].as_str().unwrap();
        let ours = ChatTemplate::new(source, &tokenizer).render(&[], &options);
        match (ours, case[1].as_str()) {
            (Ok(ours), Some(expected)) if ours == expected => {}
            (Err(_), None) => {}
            (ours, expected) => different.push(format!("{source}\n  ours {ours:?}\n  python {expected:?} {}", case[2])),
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn expressions_print_as_in_python() {
    compare(include_str!("jinja2.json"));
}

/// `jinja2_drawn.py` draws them, and more for the file that `WEFT_JINJA2` names.
#[test]
fn drawn_expressions_print_as_in_python() {
    compare(include_str!("jinja2_drawn.json"));
    if let Some(file) = std::env::var_os("WEFT_JINJA2") {
        compare(&std::fs::read_to_string(file).unwrap());
    }
}
