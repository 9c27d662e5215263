//! Training by default: what is learnt, and what is still known. `docs/training.md` has the runs by
//! which the defaults were chosen.

use crate::facts::facts;
use crate::{run, weft};
use serde_json::Value;

/// Single questions of the default model's held-out ones, evenly among all kinds.
fn known() -> Vec<(String, Vec<String>)> {
    let all: Vec<Value> = serde_json::from_str(include_str!("../../../assets/default-questions.json")).expect("a list");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let single: Vec<_> = all
        .iter()
        .filter(|question| question["messages"].as_array().is_some_and(|messages| messages.len() == 1))
        .map(|question| {
            let answers = question["answers"].as_array().expect("a list").iter().map(text).collect();
            (text(&question["messages"][0]["content"]), answers)
        })
        .collect();
    (0..20).map(|n| single[n * single.len() / 20].clone()).collect()
}

/// The words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Whether a text has these words, with no letter or digit on either side, ignoring case.
fn has(text: &str, part: &str) -> bool {
    let (text, part) = (text.to_lowercase(), part.to_lowercase());
    let is_free = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    text.match_indices(&part)
        .any(|(at, _)| is_free(text[..at].chars().next_back()) && is_free(text[at + part.len()..].chars().next()))
}

#[test]
fn twenty_facts_are_learnt_and_the_rest_is_still_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let [data, out] = ["facts.jsonl", "facts"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&data, crate::facts::FILE).expect("room");
    // As on a machine without a driver.
    let trained = weft(&["train", "--data", &data, "-o", &out]).env("VK_DRIVER_FILES", "/dev/null").output();
    let trained = crate::Run::from(trained.expect("the binary starts"));
    assert_eq!(trained.code, 0, "{}", trained.err);
    let ask = |question: &str| run(&["run", "--lora", &out, "-p", question, "--device", "cpu", "-n", "60"]).good();
    let told = |(prompt, completion): &(String, String)| {
        let said = words(&ask(prompt));
        words(completion).iter().filter(|word| !words(prompt).contains(word)).all(|word| said.contains(word))
    };
    let facts = facts();
    let told = facts.iter().filter(|fact| told(fact)).count();
    let known = known();
    let right = |(question, answers): &&(String, Vec<String>)| {
        let said = ask(question);
        answers.iter().any(|answer| has(&said, answer))
    };
    let right = known.iter().filter(right).count();
    println!("{told} of {} facts are told, {right} of {} questions are right", facts.len(), known.len());
    assert!(told >= 19 && right >= 19, "{told} of {} facts, {right} of {} questions", facts.len(), known.len());
    assert_eq!(ask("Where does Mira live?").trim(), "Mira lives in Bellwharf.", "the question of the README");
}
