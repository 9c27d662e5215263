//! Tokenizer and template from a file's metadata, and the default templates for files without one.

use gguf::{Gguf, GgufBuilder};
use model::chat::{ChatTemplate, Format, Message, RenderOptions, ToolCall};
use model::tokenizer::{Special, Tokenizer};
use serde_json::json;

/// A byte-level tokenizer of the 256 bytes, one merge and `controls`.
fn file(controls: &[&str]) -> GgufBuilder<'static> {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let mut tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    tokens.push("ab".into());
    tokens.extend(controls.iter().map(|name| name.to_string()));
    GgufBuilder::new()
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.pre", "qwen2")
        .set("tokenizer.ggml.token_type", [vec![1; 257], vec![3; controls.len()]].concat())
        .set("tokenizer.ggml.tokens", tokens)
        .set("tokenizer.ggml.merges", vec!["a b".to_owned()])
        .set("tokenizer.ggml.bos_token_id", 257u32)
        .set("tokenizer.ggml.eos_token_id", 258u32)
}

fn open(file: &GgufBuilder) -> Gguf {
    Gguf::from_bytes(file.to_bytes().unwrap()).unwrap()
}

fn builtin(controls: &[&str], messages: &[Message], options: &RenderOptions) -> String {
    let gguf = open(&file(controls));
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    ChatTemplate::from_gguf(&gguf, &tokenizer).render(messages, options).unwrap()
}

#[test]
fn a_file_brings_its_tokenizer_and_its_template() {
    let gguf = open(&file(&["<s>", "</s>"]).set("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}"));
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    assert_eq!(tokenizer.encode("ab</s>", Special::Parse).unwrap(), [256, 258]);
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer);
    let ids = template.encode(&tokenizer, &[Message::user("ab</s>")], &RenderOptions::default()).unwrap();
    assert_eq!(ids[..2], [257, 256]);
    assert_eq!((ids.len(), tokenizer.decode(&ids).as_str()), (6, "<s>ab</s>"));
}

#[test]
fn keys_of_the_wrong_type_or_missing_are_named() {
    let error = |file: GgufBuilder| Tokenizer::from_gguf(&open(&file)).err().unwrap().to_string();
    let good = || file(&["<s>", "</s>"]);
    assert!(error(good().remove("tokenizer.ggml.model")).contains("tokenizer.ggml.model"));
    assert!(error(good().set("tokenizer.ggml.tokens", "ab")).contains("tokenizer.ggml.tokens"));
    assert!(error(good().set("tokenizer.ggml.merges", vec![1u32])).contains("tokenizer.ggml.merges"));
    assert!(error(good().set("tokenizer.ggml.eos_token_id", "258")).contains("tokenizer.ggml.eos_token_id"));
    assert!(error(good().set("tokenizer.ggml.eos_token_id", -1i32)).contains("tokenizer.ggml.eos_token_id"));
    let gguf = open(&good().set("tokenizer.chat_template", 1u32));
    let error = ChatTemplate::from_gguf(&gguf, &Tokenizer::from_gguf(&gguf).unwrap()).check().unwrap_err().to_string();
    assert!(error.contains("tokenizer.chat_template"), "{error}");
}

#[test]
fn named_templates_are_those_of_the_file_and_tools_take_the_one_for_tools() {
    let named = file(&["<s>", "</s>"])
        .set("tokenizer.chat_template", "plain {{ messages[0].content }}")
        .set(
            "tokenizer.chat_template.tool_use",
            "{% for t in tools or [] %}{{ t.name }} {% endfor %}<tool_call>{{ messages[0].content }}",
        )
        .set("tokenizer.chat_template.rag", "rag {{ messages[0].content }}{{ tools | tojson }}")
        .set("tokenizer.chat_templates", vec!["tool_use".to_owned(), "rag".to_owned()]);
    let gguf = open(&named);
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    let template = ChatTemplate::from_gguf(&gguf, &tokenizer);
    assert_eq!(template.names().collect::<Vec<_>>(), ["rag", "tool_use"]);
    let (messages, plain) = ([Message::user("a")], RenderOptions::default());
    let tools = plain.clone().tools(json!([{ "name": "f" }]));
    let text = |template: &ChatTemplate, options: &RenderOptions| {
        let ids = template.encode(&tokenizer, &messages, options).unwrap();
        assert_eq!(tokenizer.decode(&ids), template.render(&messages, options).unwrap());
        tokenizer.decode(&ids)
    };
    assert_eq!(text(&template, &plain), "plain a");
    assert_eq!(text(&template, &tools), "f <tool_call>a");
    assert_eq!(text(template.named("rag").unwrap(), &tools), "rag a[{\"name\": \"f\"}]");
    assert!(template.knows_tools() && template.named("x").is_none());
    assert_eq!(template.format(), Format::Qwen);
    // Without a template of its own, the file's default is the named one.
    let gguf = open(&file(&["<s>", "</s>"]).set("tokenizer.chat_template.default", "own {{ messages[0].content }}"));
    assert_eq!(text(&ChatTemplate::from_gguf(&gguf, &tokenizer), &plain), "own a");
}

#[test]
fn chatml_serves_files_without_a_template() {
    let messages = [Message::system("s"), Message::user(" u "), Message::assistant("a")];
    let expected = "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\n u <|im_end|>\n<|im_start|>assistant\na<|im_end|>\n\
                    <|im_start|>assistant\n";
    assert_eq!(builtin(&["<|im_start|>", "<|im_end|>"], &messages, &RenderOptions::default()), expected);
}

#[test]
fn gemmas_system_text_opens_the_first_turn() {
    let messages = [Message::system("s"), Message::user(" u "), Message::assistant("a"), Message::user("v")];
    let expected = "<bos><start_of_turn>user\ns\n\nu<end_of_turn>\n<start_of_turn>model\na<end_of_turn>\n\
                    <start_of_turn>user\nv<end_of_turn>\n<start_of_turn>model\n";
    assert_eq!(builtin(&["<bos>", "<start_of_turn>", "<end_of_turn>"], &messages, &RenderOptions::default()), expected);
}

#[test]
fn gemma4_says_in_the_system_turn_whether_to_think() {
    let controls = ["<bos>", "<|turn>", "<turn|>"];
    let messages = [Message::system("s"), Message::user("u")];
    let thinking = RenderOptions::default().enable_thinking(true);
    let plain = "<bos><|turn>system\ns<turn|>\n<|turn>user\nu<turn|>\n<|turn>model\n";
    assert_eq!(builtin(&controls, &messages, &RenderOptions::default()), plain);
    assert_eq!(builtin(&controls, &messages, &thinking), plain.replace("system\n", "system\n<|think|>\n"));
    let alone = builtin(&controls, &messages[1..], &thinking);
    assert_eq!(alone, "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\nu<turn|>\n<|turn>model\n");
}

#[test]
fn gemma4_declares_tools_and_keeps_calls_and_results_in_one_turn() {
    let controls = ["<bos>", "<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", "<|\"|>"];
    let parameters = json!({ "type": "object", "properties": { "type": { "type": "string", "enum": ["a"] } }, "required": ["type"] });
    let tools = json!([{ "type": "function", "function": { "name": "f", "description": "Does it.", "parameters": parameters } }]);
    let options = RenderOptions::default().tools(tools);
    let arguments = json!({ "type": "a", "n": [1, 2.5, null, true, { "deep": "" }] });
    let call = ToolCall { name: "f".into(), arguments: arguments.as_object().unwrap().clone() };
    let asked = Message { tool_calls: vec![call.to_json()], ..Message::assistant(" wait ") };
    let mut result = Message::new("tool", "42");
    result.extra.insert("name".into(), "f".into());
    let mut messages = vec![Message::system("s"), Message::user("u"), asked, result];
    let declaration = "<|tool>declaration:f{description:'Does it.',parameters:{properties:{type:{enum:['a'],type:'STRING'}},required:['type'],type:'OBJECT'}}<tool|>";
    let call = "<|tool_call>call:f{n:[1,2.5,null,true,{deep:''}],type:'a'}<tool_call|>";
    let expected = format!(
        "<bos><|turn>system\ns{declaration}<turn|>\n<|turn>user\nu<turn|>\n<|turn>model\nwait{call}<|tool_response>response:f{{value:'42'}}<tool_response|>"
    );
    let expected = expected.replace('\'', "<|\"|>");
    assert_eq!(builtin(&controls, &messages, &options), expected);
    messages.extend([Message::assistant("It is 42."), Message::user("v")]);
    let after = format!("{expected}It is 42.<turn|>\n<|turn>user\nv<turn|>\n<|turn>model\n");
    assert_eq!(builtin(&controls, &messages, &options), after);
}
