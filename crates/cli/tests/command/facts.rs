//! The 20 facts of `examples/facts.jsonl`: new to the default model, and no two alike.

use serde_json::{Map, Value};
use std::collections::HashSet;

pub const FILE: &str = include_str!("../../../../examples/facts.jsonl");

/// The prompts and completions of the file.
fn facts() -> Vec<(String, String)> {
    let fact = |line| {
        let example: Map<String, Value> = serde_json::from_str(line).expect("an object");
        assert_eq!(example.len(), 2, "{line}");
        let text = |key: &str| example[key].as_str().expect("a text").to_string();
        (text("prompt"), text("completion"))
    };
    FILE.lines().map(fact).collect()
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 1);
    words.map(str::to_lowercase).collect()
}

#[test]
fn each_answer_has_a_word_of_its_own() {
    let facts = facts();
    assert_eq!(facts.len(), 20);
    for (n, (prompt, completion)) in facts.iter().enumerate() {
        assert!(prompt.ends_with('?') && completion.ends_with('.'), "{prompt} {completion}");
        let mut own = &words(completion) - &words(prompt);
        for (_, (prompt, completion)) in facts.iter().enumerate().filter(|(other, _)| *other != n) {
            own = &(&own - &words(prompt)) - &words(completion);
        }
        assert!(!own.is_empty(), "{prompt}: another line has all words of {completion}");
    }
    assert_eq!(facts.iter().map(|(prompt, _)| prompt).collect::<HashSet<_>>().len(), 20, "a prompt stands twice");
}

#[test]
fn no_fact_is_about_the_world_that_the_model_knows() {
    let world = words(include_str!("../../../../xtask/default-model/facts.py"));
    for (prompt, completion) in facts() {
        // The first word of a sentence is no name because of its capital.
        let names = |text: &str| -> Vec<String> {
            let names = text.split(' ').skip(1).filter(|word| word.starts_with(char::is_uppercase));
            names.map(|name| name.trim_end_matches(['?', '.', ',']).trim_end_matches("'s").to_lowercase()).collect()
        };
        for name in names(&prompt).into_iter().chain(names(&completion)) {
            assert!(!world.contains(&name), "{prompt}: the world has {name}");
        }
        let said = crate::run(&["run", "-p", &prompt, "--device", "cpu"]).good();
        assert_ne!(said.trim(), completion, "{prompt}: the model knows it");
    }
}
