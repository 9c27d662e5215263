//! Small tokenizers, templates of both families, and examples in memory.

use gguf::{Gguf, GgufBuilder, Source};
use model::chat::ChatTemplate;
use model::tokenizer::{Parts, Tokenizer};
use std::sync::Arc;
use train::{Data, DataOptions, Document, Error, Stream, Texts};

/// The 256 bytes, two line breaks in one, then control tokens, then user-defined tokens.
pub fn tokenizer(controls: &[&str], user_defined: &[&str]) -> Arc<Tokenizer> {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).expect("a character"),
        false => byte as char,
    };
    let named = ["ĊĊ"].iter().chain(controls).chain(user_defined).map(|name| name.to_string());
    let tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).chain(named).collect();
    let parts = Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens: tokens.iter().map(String::as_bytes).collect(),
        token_type: Some([vec![1; 257], vec![3; controls.len()], vec![4; user_defined.len()]].concat()),
        merges: Some(vec!["Ċ Ċ".as_bytes()]),
        bos_token_id: Some(257),
        eos_token_id: Some(258),
        eom_token_id: controls.iter().position(|name| *name == "<|tool_response>").map(|at| 257 + at as u32),
        add_bos_token: Some(controls[0] == "<bos>"),
        ..Parts::default()
    };
    Arc::new(Tokenizer::from_parts(&parts).expect("a tokenizer"))
}

fn texts(tokenizer: Arc<Tokenizer>, template: &str) -> Texts {
    let template = ChatTemplate::new(template, &tokenizer);
    Texts::new(tokenizer, template)
}

fn qwen_tokenizer() -> Arc<Tokenizer> {
    tokenizer(&["<|endoftext|>", "<|im_end|>", "<|im_start|>"], &["<think>", "</think>", "<tool_call>", "</tool_call>"])
}

fn gemma3_tokenizer() -> Arc<Tokenizer> {
    tokenizer(&["<bos>", "<end_of_turn>", "<start_of_turn>"], &[])
}

fn gemma4_tokenizer() -> Arc<Tokenizer> {
    let controls =
        ["<bos>", "<turn|>", "<|turn>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>"];
    tokenizer(&[&controls[..], &["<tool_response|>", "<|\"|>"]].concat(), &[])
}

/// Qwen2.5 and Qwen3 without thinking: ChatML.
pub const QWEN2: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
    {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// Qwen3: the last turn has its thinking, if only empty, and those before the last question have
/// none.
pub const QWEN3: &str = "{% set ns = namespace(asked=0) %}{% for message in messages %}\
    {% if message.role == 'user' %}{% set ns.asked = loop.index0 %}{% endif %}{% endfor %}\
    {% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}\
    {% if message.role == 'assistant' and loop.index0 > ns.asked %}\
    {{ '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' }}{% endif %}\
    {{ message.content + '<|im_end|>\\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}\
    {% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}";

/// QwQ: the prompt opens the thinking, and answers are shown without theirs.
pub const QWQ: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\
    {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}";

/// Gemma 2 and 3.
pub const GEMMA3: &str = "{{ bos_token }}{% for message in messages %}\
    {{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}\
    {{ message.content | trim + '<end_of_turn>\\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

/// Gemma 4: unless thinking is asked for, the prompt has an empty one, which answers do not show. A
/// turn with a call of a tool stays open for the result.
pub const GEMMA4: &str = "{{ bos_token }}{% set ns = namespace(open=false) %}{% for message in messages %}\
    {% if message.role == 'tool' %}{{ '<|tool_response>' + message.content + '<tool_response|>' }}{% else %}\
    {% if not ns.open %}{{ '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' }}{% endif %}\
    {{ message.content | trim }}{% for call in message.tool_calls or [] %}\
    {{ '<|tool_call>call:' + call.function.name + '{}<tool_call|>' }}{% endfor %}\
    {% set ns.open = message.tool_calls is defined and message.tool_calls | length > 0 %}{{ '<turn|>\\n' if not ns.open }}{% endif %}{% endfor %}\
    {% if add_generation_prompt %}{% if not ns.open %}{{ '<|turn>model\\n' }}{% endif %}\
    {% if not enable_thinking | default(false) %}{{ '<|channel>thought\\n<channel|>' }}{% endif %}{% endif %}";

/// The template that a model has whose file brings none.
fn built_in(tokenizer: Arc<Tokenizer>) -> Texts {
    let file = Gguf::from_bytes(GgufBuilder::new().to_bytes().expect("written")).expect("a file");
    let template = ChatTemplate::from_gguf(&file, &tokenizer);
    Texts::new(tokenizer, template)
}

/// ChatML, Gemma's template and Gemma 4's, as built in.
pub fn built_ins() -> [Texts; 3] {
    [qwen_tokenizer(), gemma3_tokenizer(), gemma4_tokenizer()].map(built_in)
}

pub fn qwen2() -> Texts {
    texts(qwen_tokenizer(), QWEN2)
}

pub fn qwen3() -> Texts {
    texts(qwen_tokenizer(), QWEN3)
}

pub fn qwq() -> Texts {
    texts(qwen_tokenizer(), QWQ)
}

pub fn gemma3() -> Texts {
    texts(gemma3_tokenizer(), GEMMA3)
}

pub fn gemma4() -> Texts {
    texts(gemma4_tokenizer(), GEMMA4)
}

pub fn options() -> DataOptions {
    DataOptions::default()
}

/// The examples of a file in memory.
pub fn data(name: &str, bytes: &[u8], texts: Texts, options: &DataOptions) -> Result<Data, Error> {
    Data::new(vec![(name.to_string(), Box::new(bytes.to_vec()) as Box<dyn Source>)], texts, options, &|_| ())
}

/// The documents of lines.
pub fn documents(lines: &str, texts: Texts, options: &DataOptions) -> Vec<Document> {
    let mut stream = stream("facts.jsonl", lines.as_bytes(), texts, options);
    stream.next(u32::MAX).expect("good lines")
}

pub fn stream(name: &str, bytes: &[u8], texts: Texts, options: &DataOptions) -> Stream {
    Stream::new(name, Box::new(std::io::Cursor::new(bytes.to_vec())), texts, options)
}

/// The text of each document of a line, with what is learnt in brackets.
pub fn marked(line: &str, texts: &Texts, options: &DataOptions) -> Vec<String> {
    let documents = documents(line, texts.clone(), options);
    documents.iter().map(|document| shown(document, texts)).collect()
}

pub fn shown(document: &Document, texts: &Texts) -> String {
    texts
        .pieces(document)
        .iter()
        .map(|piece| if piece.learnt { format!("⟦{}⟧", piece.text) } else { piece.text.clone() })
        .collect()
}

/// The reason against a line.
pub fn refused(line: &str, texts: &Texts, options: &DataOptions) -> String {
    let error = data("facts.jsonl", line.as_bytes(), texts.clone(), options).map(|_| ()).expect_err("a bad line");
    error.to_string()
}
