//! Contents in parts, arguments as JSON text and messages without content, under templates that
//! show one form of them or none.

use crate::template_limits::tokenizer;
use model::chat::{ChatTemplate, Message, RenderOptions};
use serde_json::{Value, json};

/// Qwen3's way: contents that are no text are empty, arguments may be JSON text.
const TEXTS: &str = "{% for m in messages %}{% set c = m.content if m.content is string else '' %}[{{ m.role }}: {{ c }}]\
                     {% for call in m.tool_calls %}{% set f = call.function %}<{{ f.name }} \
                     {{ f.arguments if f.arguments is string else f.arguments | tojson }}>{% endfor %}{% endfor %}";
/// Contents in parts, and nothing else.
const PARTS: &str = "{% for m in messages %}[{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}\
                     {% for p in m.content %}{{ p.text if p.type == 'text' else '(' ~ p.type ~ ')' }}{% endfor %}{% endif %}]{% endfor %}";

fn messages(json: Value) -> Vec<Message> {
    serde_json::from_value(json).unwrap()
}

fn render(source: &str, json: Value) -> Result<String, String> {
    let options = RenderOptions::default().add_generation_prompt(false);
    ChatTemplate::new(source, &tokenizer()).render(&messages(json), &options).map_err(|error| error.to_string())
}

fn parts(parts: &[&str]) -> Value {
    parts.iter().map(|text| json!({ "type": "text", "text": text })).collect()
}

/// A question and a call.
fn called(content: Value, arguments: Value) -> Value {
    let call = json!({ "id": "1", "type": "function", "function": { "name": "f", "arguments": arguments } });
    json!([{ "role": "user", "content": "q" }, { "role": "assistant", "content": content, "tool_calls": [call] }])
}

#[test]
fn parts_of_text_are_joined_where_the_template_wants_text() {
    let talk =
        json!([{ "role": "user", "content": parts(&["a", "b"]) }, { "role": "assistant", "content": parts(&["c"]) }]);
    assert_eq!(render(TEXTS, talk.clone()).unwrap(), "[user: a\nb][assistant: c]");
    assert_eq!(render(PARTS, talk.clone()).unwrap(), "[user: ab][assistant: c]");
    // Python prints a list.
    assert_eq!(render("{% for m in messages %}{{ m.content }};{% endfor %}", talk.clone()).unwrap(), "a\nb;c;");
    assert_eq!(
        render("{% for m in messages %}'{{ m.content }}'{% endfor %}", json!([{ "role": "user", "content": ["a"] }]))
            .unwrap(),
        "'a'"
    );
    // A template that adds contents to text.
    assert_eq!(
        render("{% for m in messages %}{{ m.role + m.content }} {% endfor %}", talk).unwrap(),
        "usera\nb assistantc "
    );
    // The answer is learnt, whatever the form of the question.
    let tokenizer = tokenizer();
    let talk = messages(
        json!([{ "role": "user", "content": "q" }, { "role": "assistant", "content": parts(&["wq1x", "d"]) }]),
    );
    let source = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% endif %}{% endfor %}\
                  {% if add_generation_prompt %}<assistant>{% endif %}";
    let (_, answer) =
        ChatTemplate::new(source, &tokenizer).encode_answer(&tokenizer, &talk, &RenderOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&answer), "wq1x\nd");
}

#[test]
fn what_no_form_shows_is_an_error_that_names_it() {
    let image = json!([{ "role": "user", "content": [{ "type": "image", "image": "a.png" }, { "type": "text", "text": "b" }] }]);
    assert!(render(TEXTS, image.clone()).unwrap_err().contains("does not show a part of type image in message 1"));
    assert_eq!(render(PARTS, image).unwrap(), "[user: (image)b]");
    let error = render(PARTS, called("c".into(), json!({ "a": 1 }))).unwrap_err();
    assert!(error.contains("does not show the call of f in message 2"), "{error}");
    let names = "{% for m in messages %}{{ m.content }}{% for call in m.tool_calls %}{{ call.function.name }}{% endfor %}{% endfor %}";
    let error = render(names, called("c".into(), json!({ "a": 1 }))).unwrap_err();
    assert!(error.contains("does not show the arguments of the call of f in message 2"), "{error}");
    let error = render(
        "{% for m in messages %}{{ m.role }}{% endfor %}",
        json!([{ "role": "user", "content": parts(&["a"]) }]),
    )
    .unwrap_err();
    assert!(error.contains("does not show part 1 of message 1, a text"), "{error}");
    let tools = json!([{ "type": "function", "function": { "name": "weather" } }]);
    let options = RenderOptions::default().tools(tools);
    let tokenizer = tokenizer();
    let error = ChatTemplate::new(TEXTS, &tokenizer).render(&[Message::user("q")], &options).unwrap_err().to_string();
    assert!(error.contains("does not show the tool weather"), "{error}");
    let refusing = "{% for m in messages %}{{ raise_exception('only one turn') if loop.index > 1 }}{% endfor %}";
    assert!(render(refusing, called("c".into(), json!({}))).unwrap_err().contains("only one turn"));
}

#[test]
fn arguments_are_the_object_or_the_text_that_the_template_shows() {
    let text = r#"{"city":"Oslo", "n": [1]}"#;
    let both = |source: &str, expected: &str, from_object: &str| {
        assert_eq!(render(source, called("".into(), text.into())).unwrap(), expected, "{source}");
        let object = serde_json::from_str(text).unwrap();
        assert_eq!(render(source, called("".into(), object)).unwrap(), from_object, "{source}");
    };
    let of = |shown: &str| {
        format!(
            "{{% for m in messages %}}{{% for call in m.tool_calls %}}{{% set f = call.function %}}<{{{{ f.name }}}} {shown}>{{% endfor %}}{{% endfor %}}"
        )
    };
    let spaced = r#"<f {"city": "Oslo", "n": [1]}>"#;
    // Text where the template takes both, or adds it to text.
    both(&of("{{ f.arguments if f.arguments is string else f.arguments | tojson }}"), &format!("<f {text}>"), spaced);
    both(&of("{{ '' + f.arguments }}"), &format!("<f {text}>"), spaced);
    both(&of("{{ f.arguments }}"), &format!("<f {text}>"), spaced);
    // An object where the template writes JSON, or a notation of its own.
    both(&of("{{ f.arguments | tojson }}"), spaced, spaced);
    let pairs = "{% for k, v in f.arguments.items() %}{{ k }}={{ v }};{% endfor %}";
    both(&of(pairs), "<f city=Oslo;n=[1];>", "<f city=Oslo;n=[1];>");
    let marked = "{% if f.arguments is string %}'{{ f.arguments }}'{% else %}{% for k in f.arguments %}{{ k }}:{{ f.arguments[k] }},{% endfor %}{% endif %}";
    both(&of(marked), "<f city:Oslo,n:[1],>", "<f city:Oslo,n:[1],>");
    assert_eq!(render(&of(pairs), called("".into(), "".into())).unwrap(), "<f >");
    let error = render(&of(pairs), called("".into(), "[1]".into())).unwrap_err();
    assert!(error.contains("arguments of the call of f are no JSON object"), "{error}");
    assert_eq!(render(&of("{{ f.arguments }}"), called("".into(), "not JSON".into())).unwrap(), "<f not JSON>");
}

#[test]
fn a_call_without_content_does_not_say_none() {
    let of = |shown: &str| {
        format!(
            "{{% for m in messages %}}[{shown}]{{% for call in m.tool_calls %}}{{{{ call | tojson }}}}{{% endfor %}}{{% endfor %}}"
        )
    };
    let begins = |source: &str, content: Value, expected: &str| {
        let text = render(source, called(content, json!({}))).unwrap();
        assert!(text.starts_with(expected), "{source}: {text}");
    };
    begins(&of("{{ m.content }}"), Value::Null, "[q][]{");
    begins(&of("{{ m.content | trim }}"), Value::Null, "[q][]{");
    begins(&of("{{ m.role + m.content }}"), Value::Null, "[userq][assistant]{");
    // Where the template asks, it keeps its answer; what a person writes is kept too.
    begins(&of("{{ '-' if m.content is none else m.content }}"), Value::Null, "[q][-]{");
    begins(&of("{{ m.content }}"), "None".into(), "[q][None]{");
}
