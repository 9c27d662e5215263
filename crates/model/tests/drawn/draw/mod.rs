//! Templates, messages and texts drawn from grammars: by numbers in tests, by bytes when fuzzing.
#![allow(dead_code)]

pub mod go;
pub mod jinja;

use model::chat::{Message, RenderOptions};
use model::tokenizer::{Parts, Tokenizer};
use serde_json::{Map, Value, json};

/// Where choices come from.
pub enum Draw<'a> {
    /// Marsaglia's xorshift64: the same choices on every run.
    Numbers(u64),
    /// A byte for each choice, then zeros. Every grammar ends on zeros.
    Bytes(&'a [u8]),
}

/// Pieces of texts: what templates look for, what must be escaped, letters of one to four bytes.
const PIECES: &str = "a|b| |ab|\n|é|ß|世|🧵|%|%s|{|}|{}|{:>9}|<|<|im_end|>|<|im_start|>|<think>|</think>|'|\"|\\|0|9|-|.|_|\u{301}|\
                      \u{2028}|\r\n|\t|a.b|<a>|&|X|System|1e5|none|[1]|tool";

impl Draw<'_> {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        match self {
            Draw::Numbers(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (*state % end as u64) as usize
            }
            Draw::Bytes(bytes) => {
                let Some((first, rest)) = bytes.split_first() else { return 0 };
                *bytes = rest;
                usize::from(*first) % end
            }
        }
    }

    /// One of `of`, which stand between separators.
    pub fn pick<'t>(&mut self, of: &'t str, separator: &str) -> &'t str {
        let at = self.below(of.split(separator).count());
        of.split(separator).nth(at).unwrap_or_default()
    }

    /// Up to 15 pieces.
    pub fn text(&mut self) -> String {
        (0..self.below(16)).map(|_| self.piece()).collect()
    }

    fn piece(&mut self) -> String {
        match self.below(8) {
            0 => char::from(self.below(128) as u8).to_string(),
            1 => self.pick(PIECES, "|").repeat(1 + self.below(64)),
            _ => self.pick(PIECES, "|").to_string(),
        }
    }

    /// JSON of at most `depth` levels.
    pub fn json(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 5 } else { 8 };
        match self.below(kinds) {
            0 => self.text().into(),
            1 => Value::Null,
            2 => (self.below(3) == 0).into(),
            3 => [-1, 0, 1, 7, 255, i64::MAX, i64::MIN][self.below(7)].into(),
            4 => [0.5, 1e-7, 1e16, -0.0, 1.5e300][self.below(5)].into(),
            5 => (0..self.below(5)).map(|_| self.json(depth - 1)).collect(),
            _ => Value::Object(self.map(depth - 1)),
        }
    }

    fn map(&mut self, depth: usize) -> Map<String, Value> {
        let key = |draw: &mut Self| {
            if draw.below(4) == 0 { draw.text() } else { draw.pick("name|a|b|type|role|k", "|").to_string() }
        };
        (0..self.below(4)).map(|_| (key(self), self.json(depth))).collect()
    }

    /// A conversation, and how to render it.
    pub fn conversation(&mut self) -> (Vec<Message>, RenderOptions) {
        let message = |draw: &mut Self| {
            let role = draw.pick("user|assistant|system|tool|model|", "|");
            let mut message = Message::new(role, draw.text());
            match draw.below(6) {
                0 => message.content = None,
                1 => message.content = Some(draw.json(2)),
                2 => message.reasoning_content = Some(draw.text()),
                3 => {
                    message.tool_calls = vec![
                        json!({ "type": "function", "function": { "name": draw.text(), "arguments": draw.json(3) } }),
                    ]
                }
                4 => message.extra = draw.map(2),
                _ => {}
            }
            message
        };
        let messages = (0..self.below(5)).map(|_| message(self)).collect();
        let tools = (self.below(2) == 0).then(|| json!([{ "a": { "b": [1, "é"] }, "function": self.json(3) }]));
        let options =
            RenderOptions::default().tools(tools).enable_thinking([None, Some(true), Some(false)][self.below(3)]);
        (messages, options.add_generation_prompt(self.below(2) == 0).now_unix_s(1_600_000_000))
    }
}

/// The 256 bytes, and Qwen's control tokens.
pub fn tokenizer() -> Tokenizer {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let names = [("<|im_start|>", 3), ("<|im_end|>", 3), ("<|endoftext|>", 3), ("<think>", 4), ("</think>", 4)];
    let tokens = (0..=255).map(|byte| spell(byte).to_string()).chain(names.map(|(name, _)| name.to_string()));
    let tokens: Vec<String> = tokens.collect();
    Tokenizer::from_parts(&Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens: tokens.iter().map(String::as_bytes).collect(),
        token_type: Some([1; 256].into_iter().chain(names.map(|(_, kind)| kind)).collect()),
        merges: Some(vec![]),
        bos_token_id: Some(258),
        eos_token_id: Some(257),
        ..Parts::default()
    })
    .unwrap()
}
