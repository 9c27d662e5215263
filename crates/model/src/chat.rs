//! Conversations to prompts, by the Jinja template that the model's file carries.
//!
//! Templates are those of Hugging Face: they render here as in `transformers` (`trim_blocks`, `lstrip_blocks`, Python's string
//! methods, `tojson`, `raise_exception`, `strftime_now`, loop controls).
//!
//! # What others wrote stays text
//!
//! A template's output mixes its own control tokens with text from users, documents and tools. Parsing the whole would let a
//! message that contains `<|im_end|>` end its turn and open another. [`ChatTemplate::encode`] keeps the two apart:
//! before rendering, one character is exchanged for a private one wherever a string from the caller spells a control token, or
//! could complete one together with what stands beside it; after rendering, only control tokens that are still whole are
//! parsed; then the private characters are changed back, and the stretches between are encoded as plain text. See `guard.rs`
//! for the rule and its limit.

pub mod answer;
mod builtin;
mod environment;
mod error;
mod guard;
mod json;
mod message;
mod strftime;

use gguf::Gguf;
use minijinja::Environment;
use minijinja::value::Serde;
use serde_json::{Map, Value};

use crate::tokenizer::{Special, Tokenizer};
use guard::Guard;

pub use answer::{Event, Format, Parser, Reply, ToolCall};
pub use error::ChatError;
pub use message::{Message, RenderOptions};

const NAME: &str = "chat";
/// Tokens at the end of a prompt that tell whether it has begun the thinking.
const TAIL: usize = 32;

/// A chat template, compiled.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    format: Format,
    /// `bos_token` and its like, which every template may use.
    tokens: Map<String, Value>,
}

impl ChatTemplate {
    /// The file's `tokenizer.chat_template`, or the built-in one for the turns that its vocabulary knows: Gemma 4's, Gemma's,
    /// else ChatML.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        match gguf.get_opt::<&str>("tokenizer.chat_template")? {
            Some(source) => Self::new(source, tokenizer),
            None => Self::new(builtin::for_vocabulary(tokenizer), tokenizer),
        }
    }

    /// Compiles `source`; `tokenizer` gives it `bos_token`, `eos_token`, `unk_token` and `pad_token`.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<Self, ChatError> {
        let environment = environment::compile(NAME, source)?;
        let ids = [
            ("bos_token", tokenizer.bos()),
            ("eos_token", tokenizer.eos()),
            ("unk_token", tokenizer.unknown()),
            ("pad_token", tokenizer.padding()),
        ];
        let named = ids.into_iter().filter_map(|(name, id)| Some((name.to_owned(), tokenizer.id_to_token(id?)?.into())));
        Ok(ChatTemplate { environment, source: source.to_owned(), format: Format::of(source, tokenizer), tokens: named.collect() })
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How answers to its prompts mark thinking and calls of tools.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the template looks at `tools`.
    pub fn knows_tools(&self) -> bool {
        self.source.contains("tools")
    }

    /// Whether the template looks at `enable_thinking`.
    pub fn knows_thinking(&self) -> bool {
        self.source.contains("enable_thinking")
    }

    /// The prompt as text, the same as Hugging Face's. To feed a model use [`encode`](Self::encode): in this text a control token
    /// of the template and one that a message spells look alike.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, ChatError> {
        self.render_values(message::values(messages, options)?, options)
    }

    /// A parser for the answer to this prompt, which may have begun the thinking.
    pub fn parser(&self, tokenizer: &Tokenizer, prompt: &[u32]) -> Parser {
        let tail = tokenizer.decode(&prompt[prompt.len().saturating_sub(TAIL)..]);
        Parser::after(self.format, &tail).with_tokenizer(tokenizer)
    }

    /// The prompt as ids, BOS included where the file asks for one. Control tokens come from the template alone: whatever the
    /// messages, tools and extra values spell is encoded as plain text.
    pub fn encode(&self, tokenizer: &Tokenizer, messages: &[Message], options: &RenderOptions) -> Result<Vec<u32>, ChatError> {
        let mut values = message::values(messages, options)?;
        let mut guard = Guard::new(tokenizer, &values, &self.source)?;
        guard.protect(&mut values)?;
        let text = self.render_values(values, options)?;
        let mut ids = Vec::new();
        for piece in tokenizer.split_controls(&text) {
            match piece {
                Ok(id) => ids.push(id),
                Err(text) => ids.extend(tokenizer.encode(&guard.restore(text), Special::Text)),
            }
        }
        Ok(tokenizer.with_bos(ids))
    }

    fn render_values(&self, values: Map<String, Value>, options: &RenderOptions) -> Result<String, ChatError> {
        let mut context = self.tokens.clone();
        context.extend(values);
        let now = options.now_unix_s;
        context.insert(environment::NOW.to_owned(), now.or_else(strftime::now_unix_s).into());
        let template = self.environment.get_template(NAME).map_err(ChatError::from_template)?;
        template.render(minijinja::Value::from(Serde(&context))).map_err(ChatError::from_template)
    }
}
