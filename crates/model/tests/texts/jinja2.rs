//! Expressions with the text that Python's jinja2 3.1.6 gives for them, set up as transformers
//! does: `jinja2.json` has values, then each template with its text, or with null and the error.

use crate::template_limits::tokenizer;
use model::chat::{ChatTemplate, RenderOptions};
use serde_json::{Map, Value};

#[test]
fn expressions_print_as_in_python() {
    let all: Value = serde_json::from_str(include_str!("jinja2.json")).unwrap();
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
