//! Parsing answers into thinking, text and tool calls, with any split into pieces.

use crate::texts::Random;
use model::chat::{Event, Format, Parser, Reply};
use model::tokenizer::{Parts, Tokenizer};
use serde_json::{Value, json};

fn collect(mut parser: Parser, pieces: impl IntoIterator<Item = impl AsRef<str>>) -> Reply {
    let mut reply = Reply::default();
    let events: Vec<Event> = pieces.into_iter().flat_map(|piece| parser.push(piece.as_ref())).collect();
    events.into_iter().chain(parser.finish()).for_each(|event| reply.add(event));
    reply
}

/// The reply to a text in one piece. Checks that single characters and every cut into two pieces
/// give the same reply.
#[track_caller]
fn reply_of(parser: &Parser, text: &str) -> Reply {
    let whole = collect(parser.clone(), [text]);
    assert_eq!(collect(parser.clone(), text.chars().map(String::from)), whole, "character by character: {text:?}");
    for (at, _) in text.char_indices() {
        assert_eq!(collect(parser.clone(), [&text[..at], &text[at..]]), whole, "cut at {at}: {text:?}");
    }
    whole
}

fn reply(format: Format, text: &str) -> Reply {
    reply_of(&Parser::new(format), text)
}

fn calls(reply: &Reply) -> Vec<Value> {
    reply.tool_calls.iter().map(|call| json!([call.name, call.arguments])).collect()
}

#[test]
fn qwen_thinks_answers_and_calls() {
    let text = "<think>\nA city, é.\n\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Lodz\", \"days\": 2}}\n</tool_call>\n\
                <tool_call>\n{\"name\": \"time\"}\n</tool_call>";
    let reply = reply(Format::Qwen, text);
    assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("A city, é.", "Let me look."));
    assert_eq!(calls(&reply), [json!(["weather", {"city": "Lodz", "days": 2}]), json!(["time", {}])]);
    assert_eq!(reply.malformed, [""; 0]);
}

#[test]
fn text_is_told_as_soon_as_it_is_certain() {
    let mut parser = Parser::new(Format::Qwen);
    let text = |text: &str| vec![Event::Text(text.to_string())];
    assert_eq!(parser.push("Hel"), text("Hel"));
    assert_eq!(parser.push("lo <"), text("lo"));
    assert_eq!(parser.push("b> x<tool"), text(" <b> x"));
    assert_eq!(parser.push("box>\n"), text("<toolbox>"));
    assert_eq!(parser.finish(), text("\n"));
    assert_eq!(parser.push("<think>"), []);
    assert_eq!(parser.push(" so"), [Event::Thinking("so".to_string())]);
}

#[test]
fn thinking_opens_an_answer_or_is_text() {
    let empty = reply(Format::Qwen, "\n<think>\n\n</think>\n\nyes\n");
    assert_eq!((empty.thinking.as_str(), empty.text.as_str()), ("", "yes\n"));
    assert_eq!(
        reply(Format::Qwen, "The tag <think> opens it, </think> ends it.").text,
        "The tag <think> opens it, </think> ends it."
    );
    let cut = reply(Format::Qwen, "<think>half a tho");
    assert_eq!((cut.thinking.as_str(), cut.text.as_str()), ("half a tho", ""));
}

#[test]
fn a_prompt_may_have_opened_the_thinking() {
    let answer = "hm\n</think>\n\nyes";
    for (format, tail) in
        [(Format::Qwen, "<|im_start|>assistant\n<think>\n"), (Format::Gemma4, "<|turn>model\n<|channel>thought\n")]
    {
        let answer = if format == Format::Qwen { answer } else { "hm\n<channel|>yes" };
        let reply = reply_of(&Parser::after(format, tail), answer);
        assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("hm", "yes"));
    }
    let closed = reply_of(&Parser::after(Format::Qwen, "assistant\n<think>\n\n</think>\n\n"), answer);
    assert_eq!((closed.thinking.as_str(), closed.text.as_str()), ("", answer));
    assert_eq!(reply_of(&Parser::after(Format::Plain, "<think>"), answer).text, answer);
}

#[test]
fn broken_calls_come_as_text_with_the_reason() {
    let cases = [
        ("{\"name\": \"f\", \"arguments\": {", "it is no JSON"),
        ("[1]", "no JSON object"),
        ("{\"arguments\": {}}", "no name"),
        ("{\"name\": 7}", "name is no text"),
        ("{\"name\": \"f\", \"arguments\": [1]}", "arguments are no JSON object"),
        ("{\"name\": \"f\", \"arguments\": \"x\"}", "arguments are text that is no JSON object"),
        ("", "it is no JSON"),
    ];
    for (body, reason) in cases {
        let text = format!("<tool_call>{body}</tool_call>");
        let reply = reply(Format::Qwen, &format!("a {text} b"));
        assert_eq!(reply.text, format!("a{text}b"), "{body}");
        assert!(
            reply.tool_calls.is_empty() && reply.malformed.len() == 1 && reply.malformed[0].contains(reason),
            "{reply:?}"
        );
    }
    let deep = format!("<tool_call>{{\"name\": \"f\", \"arguments\": {}}}</tool_call>", "[".repeat(100_000));
    assert!(collect(Parser::new(Format::Qwen), [deep]).malformed[0].contains("recursion limit"));
}

#[test]
fn a_call_without_its_end_counts_if_it_is_whole() {
    assert_eq!(calls(&reply(Format::Qwen, "<tool_call>{\"name\": \"f\"}\n")), [json!(["f", {}])]);
    assert_eq!(calls(&reply(Format::Gemma4, "<|tool_call>call:f{}")), [json!(["f", {}])]);
    let cut = reply(Format::Qwen, "<tool_call>{\"name\": \"f\", \"argu");
    assert_eq!(cut.text, "<tool_call>{\"name\": \"f\", \"argu");
    assert!(cut.malformed[0].starts_with("the answer ends within it; "), "{cut:?}");
}

#[test]
fn arguments_may_be_json_within_a_string_and_keep_their_order() {
    let reply =
        reply(Format::Qwen, r#"<tool_call>{"name": "f", "arguments": "{\"z\": 1, \"a\": [true, null]}"}</tool_call>"#);
    assert_eq!(serde_json::to_string(&reply.tool_calls[0].arguments).unwrap(), r#"{"z":1,"a":[true,null]}"#);
}

#[test]
fn qwen3_coders_tags_are_calls_and_schemas_settle_types() {
    let text = "<tool_call>\n<function=edit>\n<parameter=path>\na b.rs\n</parameter>\n<parameter=line>\n12\n</parameter>\n\
                <parameter=text>\n7\n</parameter>\n<parameter=all>true</parameter>\n</function>\n</tool_call>";
    let guessed = json!(["edit", {"path": "a b.rs", "line": 12, "text": 7, "all": true}]);
    assert_eq!(calls(&reply(Format::Qwen, text)), [guessed]);
    let properties = json!({ "text": { "type": "string" }, "line": { "type": "integer" } });
    let tools =
        json!([{ "type": "function", "function": { "name": "edit", "parameters": { "properties": properties } } }]);
    let told = reply_of(&Parser::new(Format::Qwen).with_tools(Some(tools)), text);
    assert_eq!(calls(&told), [json!(["edit", {"path": "a b.rs", "line": 12, "text": "7", "all": true}])]);
    for (body, reason) in [
        ("<function=f", "no >"),
        ("<function=>", "no name"),
        ("<function=f><parameter=x>1", "no </parameter>"),
        ("<function=f>stray", "\"stray\""),
    ] {
        let reply = reply(Format::Qwen, &format!("<tool_call>{body}</tool_call>"));
        assert!(reply.malformed[0].contains(reason), "{reply:?}");
    }
}

#[test]
fn gemma_4_thinks_in_a_channel_and_calls_in_its_own_notation() {
    let text = "<|channel>thought\nTwo\nlines.\n<channel|>Let me look.\n\
                <|tool_call>call:weather{city:<|\"|>a \"b\", {c}: d<|\"|>,days:2,exact:true,none:null,low:-1.5e1,list:[1,<|\"|>x<|\"|>,[]],deep:{a:{b:<|\"|><|\"|>}}}<tool_call|>\
                <|tool_call>call:time{}<tool_call|>";
    let reply = reply(Format::Gemma4, text);
    assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("Two\nlines.", "Let me look."));
    let arguments = json!({
        "city": "a \"b\", {c}: d", "days": 2, "exact": true, "none": null, "low": -15.0, "list": [1, "x", []], "deep": {"a": {"b": ""}},
    });
    assert_eq!(calls(&reply), [json!(["weather", arguments]), json!(["time", {}])]);
}

#[test]
fn gemma_4s_empty_and_unclosed_channels_are_understood() {
    for (text, thinking, rest) in [
        ("<|channel>thought\n<channel|>yes", "", "yes"),
        ("<|channel>thought<channel|>yes", "", "yes"),
        ("<|channel>thought\nhm", "hm", ""),
        ("<|channel>thou", "", ""),
        (
            "<|channel>a name that is far too long to be a channel's\n<channel|>yes",
            "a name that is far too long to be a channel's",
            "yes",
        ),
        ("yes<channel|> no<tool_call|>", "", "yesno"),
    ] {
        let reply = reply(Format::Gemma4, text);
        assert_eq!((reply.thinking.as_str(), reply.text.as_str()), (thinking, rest), "{text}");
    }
}

#[test]
fn gemma_4s_broken_calls_come_as_text_with_the_reason() {
    let deep = format!("call:f{{a:{}", "[".repeat(1000));
    let cases = [
        ("f{}", "call:"),
        ("call:f", "no {"),
        ("call:{}", "no name"),
        ("call:f{a:1", "it ends where , or } should be"),
        ("call:f{a}", "a key and :"),
        ("call:f{a:b}", "a value"),
        ("call:f{a:<|\"|>x}", "no end"),
        ("call:f{a:1}x", "the end"),
        ("call:f{a:[1 2]}", ", or ]"),
        (deep.as_str(), "nested deeper"),
    ];
    for (body, reason) in cases {
        let text = format!("<|tool_call>{body}<tool_call|>");
        let reply = collect(Parser::new(Format::Gemma4), [&text]);
        assert_eq!(reply.text, text);
        assert!(reply.malformed[0].contains(reason), "{reply:?} {reason}");
    }
}

/// The 256 bytes, then these control tokens from id 256 on.
fn tokenizer(controls: &[&str]) -> Tokenizer {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let tokens: Vec<String> =
        (0..=255).map(|byte| spell(byte).to_string()).chain(controls.iter().map(|c| c.to_string())).collect();
    Tokenizer::from_parts(&Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens: tokens.iter().map(String::as_bytes).collect(),
        token_type: Some([vec![1; 256], vec![3; controls.len()]].concat()),
        merges: Some(vec![]),
        ..Parts::default()
    })
    .unwrap()
}

#[test]
fn tokens_are_taken_by_id_and_other_control_tokens_stay_hidden() {
    let tokenizer = tokenizer(&["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|\"|>", "<|image>"]);
    let format = Format::of("", &tokenizer);
    assert_eq!((format, format.controls(&tokenizer)), (Format::Gemma4, vec![256, 257, 258, 259, 260]));
    let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<u32>>();
    let mut ids =
        [vec![256], bytes("thought\né"), vec![257, 261], bytes("ok "), vec![258], bytes("call:f{a:"), vec![260]]
            .concat();
    ids.extend([bytes("x"), vec![260], bytes("}"), vec![259, 261]].concat());
    let mut parser = Parser::new(format).with_tokenizer(&tokenizer);
    let mut reply = Reply::default();
    ids.iter().flat_map(|&id| parser.push_id(&tokenizer, id)).for_each(|event| reply.add(event));
    parser.finish().into_iter().for_each(|event| reply.add(event));
    assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("é", "ok"));
    assert_eq!(calls(&reply), [json!(["f", {"a": "x"}])]);
}

#[test]
fn the_format_follows_the_vocabulary_and_the_template() {
    let of = |template: &str, controls: &[&str]| Format::of(template, &tokenizer(controls));
    assert_eq!(of("", &["<start_of_turn>"]), Format::Plain);
    assert_eq!(of("{{ '<tool_call>' }}", &["<|im_start|>"]), Format::Qwen);
    assert_eq!(of("", &["<think>"]), Format::Qwen);
    assert_eq!(of("", &["<|tool_call>"]), Format::Gemma4);
}

#[test]
fn a_reply_becomes_the_message_that_templates_expect() {
    let reply =
        reply(Format::Qwen, "<think>hm</think>ok<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>");
    let call = json!({"type": "function", "function": {"name": "f", "arguments": {"a": 1}}});
    let expected = json!({"role": "assistant", "content": "ok", "reasoning_content": "hm", "tool_calls": [call]});
    assert_eq!(serde_json::to_value(reply.to_message()).unwrap(), expected);
}

#[test]
fn random_answers_are_the_same_however_they_are_cut() {
    const PIECES: [&str; 30] = [
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<|channel>",
        "<channel|>",
        "<|tool_call>",
        "<tool_call|>",
        "<|\"|>",
        "thought\n",
        "<",
        "|>",
        "call:f{",
        "a:",
        "}",
        "[",
        "{\"name\": \"f\"}",
        "\"",
        ",",
        "1",
        " ",
        "\n",
        "é世",
        "<function=f>",
        "<parameter=x>",
        "</parameter>",
        "<tool_call>{\"name\": \"f\"}</tool_call>",
        "<tool_call>\n<function=f>\n</function>\n</tool_call>",
        "<|tool_call>call:f{a:[1,{}]}<tool_call|>",
        "<|tool_call>call:f{}<tool_call|>",
    ];
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut called, mut broken) = (0, 0);
    for round in 0..6000 {
        let format = [Format::Qwen, Format::Gemma4, Format::Plain][round % 3];
        let pieces: Vec<&str> = (0..random.below(14)).map(|_| random.pick(&PIECES)).collect();
        let text = pieces.concat();
        let whole = collect(Parser::new(format), [&text]);
        assert_eq!(collect(Parser::new(format), &pieces), whole, "{pieces:?}");
        assert_eq!(collect(Parser::new(format), text.chars().map(String::from)), whole, "{text:?}");
        called += whole.tool_calls.len();
        broken += whole.malformed.len();
        assert!(format != Format::Plain || whole.text == text);
    }
    assert!(called > 100 && broken > 100, "{called} calls, {broken} broken");
}
