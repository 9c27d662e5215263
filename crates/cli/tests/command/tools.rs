//! Thinking and tool calls, with a model that always says the same.

use crate::run;
use crate::tiny::{self, Model};

/// A model whose every token is `says`, with this chat template.
pub fn saying(says: &str, template: &str) -> Model {
    let file = tiny::builder(0.0);
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    // All logits are equal, so the first token is drawn. Its byte moves to the end.
    let byte = std::mem::replace(&mut tokens[0], says.to_string());
    tokens.push(byte);
    let mut types = vec![1i32; tiny::VOCABULARY];
    types[0] = 4;
    let file = file
        .set("tokenizer.ggml.tokens", tokens)
        .set("tokenizer.ggml.token_type", types)
        .set("tokenizer.ggml.merges", Vec::<String>::new());
    Model::new(&file.set("tokenizer.chat_template", template))
}

/// A template that supports tools and the switch for thinking.
pub const TEMPLATE: &str = "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}{{ messages[-1].content }}{% if enable_thinking is false %}<think></think>{% endif %}";

fn answer(model: &Model, words: &[&str]) -> crate::Run {
    run(&[&["run", model.path(), "-p", "x", "--device", "cpu", "--temp", "0", "-n", "1"], words].concat())
}

#[test]
fn thinking_goes_to_stderr_and_into_its_own_field() {
    let model = saying("<think>\nhm, é\n</think>\n\nyes", TEMPLATE);
    let plain = answer(&model, &[]);
    assert_eq!((plain.code, plain.out.as_str(), plain.err.as_str()), (0, "yes\n", "hm, é\n\n"));
    let json = answer(&model, &["--json"]);
    assert_eq!(json.err, "");
    let json = json.json();
    assert_eq!((json["text"].as_str(), json["thinking"].as_str()), (Some("yes"), Some("hm, é")));
}

#[test]
fn a_template_that_opens_the_thinking_is_understood() {
    let model = saying("hm</think>yes", "{{ messages[0].content }}<think>\n");
    let json = answer(&model, &["--json"]).json();
    assert_eq!((json["text"].as_str(), json["thinking"].as_str()), (Some("yes"), Some("hm")));
    let raw = answer(&model, &["--raw", "--json"]).json();
    assert_eq!((raw["text"].as_str(), raw["thinking"].as_str()), (Some("hm</think>yes"), None));
}

#[test]
fn calls_are_lines_of_json_and_a_field() {
    let model = saying("ok\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>", TEMPLATE);
    assert_eq!(answer(&model, &[]).good(), "ok\n{\"name\":\"f\",\"arguments\":{\"a\":[1]}}\n");
    let json = answer(&model, &["--json"]).json();
    assert_eq!((json["text"].as_str(), json["thinking"].as_str()), (Some("ok"), None));
    assert_eq!(json["tool_calls"], serde_json::json!([{ "name": "f", "arguments": { "a": [1] } }]));
}

#[test]
fn a_call_that_cannot_be_read_is_text_with_a_note() {
    let model = saying("<tool_call>{oops}</tool_call>", TEMPLATE);
    let plain = answer(&model, &[]);
    assert_eq!((plain.code, plain.out.as_str()), (0, "<tool_call>{oops}</tool_call>\n"));
    assert!(plain.err.starts_with("weft: ") && plain.err.contains("it is no JSON"), "{}", plain.err);
    let json = answer(&model, &["--json"]).json();
    assert!(json["malformed_tool_calls"][0].as_str().unwrap().contains("it is no JSON"), "{json}");
}

#[test]
fn tools_and_the_switch_for_thinking_reach_the_template() {
    let model = saying("<tool_call>", TEMPLATE);
    let tokens =
        |words: &[&str]| answer(&model, &[words, &["--json"]].concat()).json()["prompt_tokens"].as_u64().unwrap();
    assert_eq!((tokens(&[]), tokens(&["--think"]), tokens(&["--no-think"])), (1, 1, 16));
    let path = model.beside("tools.json");
    let schema = r#"{"type": "function", "function": {"name": "f"}}"#;
    for text in [format!("[{schema}]"), schema.to_string(), r#"[{"name": "f"}]"#.to_string()] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(tokens(&["--tools", &path]), 1 + schema.len() as u64);
    }
}

#[test]
fn broken_tools_are_refused() {
    let model = saying("xx", TEMPLATE);
    let path = model.beside("tools.json");
    assert!(answer(&model, &["--tools", &path]).failed(1).contains("cannot read"));
    for (text, code, reason) in [
        ("[", 1, "is not JSON"),
        ("7", 2, "not an array of tools"),
        ("[]", 2, "not an array"),
        ("[{}]", 2, "has no name"),
        ("[7]", 2, "has no name"),
    ] {
        std::fs::write(&path, text).unwrap();
        let line = answer(&model, &["--tools", &path]).failed(code);
        assert!(line.contains("tools.json") && line.contains(reason), "{line}");
    }
}

#[test]
fn a_template_without_the_switch_or_tools_says_so() {
    let model = saying("xx", "{{ messages[-1].content }}");
    for flag in ["--think", "--no-think"] {
        let run = answer(&model, &[flag]);
        assert_eq!((run.code, run.out.as_str()), (0, "xx\n"));
        assert!(run.err.contains(&format!("no switch for thinking; {flag} has no effect")), "{}", run.err);
    }
    let path = model.beside("tools.json");
    std::fs::write(&path, r#"[{"name": "f"}]"#).unwrap();
    assert!(answer(&model, &["--tools", &path]).failed(1).contains("the chat template does not support tools"));
}
