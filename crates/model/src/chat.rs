//! Conversations to prompts, by the Jinja template that the model's file carries.
//!
//! Templates are those of Hugging Face: they render here as in `transformers` (`trim_blocks`,
//! `lstrip_blocks`, Python's string methods, `tojson`, `raise_exception`, `strftime_now`, loop
//! controls).
//!
//! # What others wrote stays text
//!
//! A template's output mixes its own control tokens with text from users, documents and tools.
//! Parsing the whole would let a message that contains `<|im_end|>` end its turn and open another.
//! [`ChatTemplate::encode`] keeps the two apart: before rendering, one character is exchanged for a
//! private one wherever a string from the caller spells a control token, or could complete one
//! together with what stands beside it; after rendering, only control tokens that are still whole
//! are parsed; then the private characters are changed back, and the stretches between are encoded
//! as plain text. See `guard.rs` for the rule and its limit.

pub mod answer;
mod answered;
mod builtin;
mod callables;
mod calls;
mod charge;
mod compile;
mod constants;
#[cfg(test)]
mod costs;
mod environment;
mod error;
mod filters;
mod fit;
mod functions;
mod guard;
mod json;
mod limits;
mod message;
mod methods;
mod printf;
mod python;
mod refusal;
mod shape;
mod size;
mod strftime;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use gguf::Gguf;
use minijinja::AutoEscape;
use minijinja::machinery::{self, make_string_output};
use minijinja::value::Serde;
use serde_json::{Map, Value};

use crate::tokenizer::Tokenizer;
use guard::Guard;
use limits::Budget;

pub use answer::{Event, Format, Parser, Reply, ToolCall};
pub use error::ChatError;
pub use message::{Message, RenderOptions};

const NAME: &str = "chat";
const KEY: &str = "tokenizer.chat_template";
/// The name of a template for conversations with tools.
const TOOL_USE: &str = "tool_use";
/// Tokens at the end of a prompt that tell whether it has begun the thinking.
const TAIL: usize = 32;

/// A chat template. It is compiled when something is to be rendered, so that a file opens, lists
/// and completes raw text whatever its template is.
#[derive(Clone)]
pub struct ChatTemplate {
    /// The text, or why the file has none.
    source: Result<String, String>,
    format: Format,
    /// `bos_token` and its like, which every template may use.
    tokens: Map<String, Value>,
    /// The other templates of the file, by name.
    named: BTreeMap<String, ChatTemplate>,
}

/// What a rendering took of what it may: thousandths of each limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The share of the levels of blocks, brackets and operators.
    pub levels: u64,
    /// The share of the bytes of the template's text.
    pub text: u64,
    /// The share of the bytes of values.
    pub values: u64,
    /// The share of the bytes of output.
    pub output: u64,
    /// The share of the elements visited.
    pub work: u64,
    /// The share of the instructions.
    pub instructions: u64,
}

impl ChatTemplate {
    /// The file's `tokenizer.chat_template`, or the built-in one for the turns that its vocabulary
    /// knows: Gemma 4's, Gemma's, else ChatML. Keys `tokenizer.chat_template.NAME` give
    /// [named](Self::named) templates.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Self {
        let read = |key: &str| match gguf.get_opt::<&str>(key) {
            Ok(source) => source.map(|source| Self::new(source, tokenizer)),
            Err(error) => Some(Self { source: Err(error.to_string()), ..Self::new("", tokenizer) }),
        };
        let keys = gguf.metadata().filter_map(|(key, _)| Some((key.strip_prefix(KEY)?.strip_prefix('.')?, key)));
        let named: BTreeMap<String, Self> =
            keys.filter_map(|(name, key)| Some((name.to_owned(), read(key)?))).collect();
        let own = read(KEY).or_else(|| named.get("default").cloned());
        let own = own.unwrap_or_else(|| Self::new(builtin::for_vocabulary(tokenizer), tokenizer));
        // Calls have marks in the template for tools, if not in all.
        let format = named.get(TOOL_USE).map(|template| template.format).filter(|_| own.format == Format::Plain);
        Self { format: format.unwrap_or(own.format), named, ..own }
    }

    /// The template `source`; `tokenizer` gives it `bos_token`, `eos_token`, `unk_token` and
    /// `pad_token`.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Self {
        let ids = [
            ("bos_token", tokenizer.bos()),
            ("eos_token", tokenizer.eos()),
            ("unk_token", tokenizer.unknown()),
            ("pad_token", tokenizer.padding()),
        ];
        let tokens =
            ids.into_iter().filter_map(|(name, id)| Some((name.to_owned(), tokenizer.id_to_token(id?)?.into())));
        let (source, format) = (Ok(source.to_owned()), Format::of(source, tokenizer));
        ChatTemplate { source, format, tokens: tokens.collect(), named: BTreeMap::new() }
    }

    /// The names of the file's other templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// The template that the file has under `tokenizer.chat_template.NAME`. It renders with tools
    /// and without.
    pub fn named(&self, name: &str) -> Option<&ChatTemplate> {
        self.named.get(name)
    }

    /// The template that renders with these options: if there are tools, the template that is named
    /// `tool_use`, as in transformers.
    fn chosen(&self, options: &RenderOptions) -> &Self {
        options.tools.as_ref().and_then(|_| self.named.get(TOOL_USE)).unwrap_or(self)
    }

    /// Compiles the template and renders nothing.
    ///
    /// # Errors
    /// What is wrong with it: [`ChatError::Metadata`], [`ChatError::Syntax`], [`ChatError::Limit`],
    /// [`ChatError::Unbounded`].
    pub fn check(&self) -> Result<(), ChatError> {
        compile::compile(NAME, &self.text()?, &environment::syntax()?).map(drop)
    }

    /// The text that is compiled; what is too long to compile is not copied.
    fn text(&self) -> Result<String, ChatError> {
        let source = self.source.as_ref().map_err(|reason| ChatError::Metadata { reason: reason.clone() })?;
        limits::check_length(source)?;
        let source = environment::without_generation_tags(&environment::with_line_feeds(source));
        Ok(constants::unfolded(source, &environment::syntax()?))
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or_default()
    }

    /// The marks of thinking and of tool calls in the model's answers.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the template looks at `tools`.
    pub fn knows_tools(&self) -> bool {
        self.source().contains("tools") || self.named.contains_key(TOOL_USE)
    }

    /// Whether the template looks at `enable_thinking`.
    pub fn knows_thinking(&self) -> bool {
        self.source().contains("enable_thinking")
    }

    /// The prompt as text, the same as Hugging Face's. To feed a model use
    /// [`encode`](Self::encode): in this text a control token of the template and one that a
    /// message spells look alike.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String, ChatError> {
        let template = self.chosen(options);
        template.render_values(template.values(messages, options)?)
    }

    /// A parser for the answer to this prompt, which may have begun the thinking.
    pub fn parser(&self, tokenizer: &Tokenizer, prompt: &[u32]) -> Parser {
        let tail = tokenizer.decode(&prompt[prompt.len().saturating_sub(TAIL)..]);
        Parser::after(self.format, &tail).with_tokenizer(tokenizer)
    }

    /// The prompt as ids, BOS included where the file asks for one. Control tokens come from the
    /// template alone: whatever the messages, tools and extra values spell is encoded as plain
    /// text.
    pub fn encode(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<u32>, ChatError> {
        let template = self.chosen(options);
        let mut values = template.values(messages, options)?;
        let mut guard = Guard::new(tokenizer, &values, template.source());
        guard.protect(&mut values)?;
        let text = template.render_values(values)?;
        Ok(tokenizer.with_bos(guard.ids(tokenizer, &text)?))
    }

    /// The template's variables, with the messages in the form that it shows.
    fn values(&self, messages: &[Message], options: &RenderOptions) -> Result<Map<String, Value>, ChatError> {
        fit::fitted(self, message::values(messages, options)?)
    }

    fn render_values(&self, values: Map<String, Value>) -> Result<String, ChatError> {
        self.measured(values).map(|(text, _)| text)
    }

    /// What rendering takes of each limit.
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn taken(&self, messages: &[Message], options: &RenderOptions) -> Result<Taken, ChatError> {
        let template = self.chosen(options);
        template.measured(template.values(messages, options)?).map(|(_, taken)| taken)
    }

    fn measured(&self, values: Map<String, Value>) -> Result<(String, Taken), ChatError> {
        let mut context = self.tokens.clone();
        context.extend(values);
        let (source, syntax) = (self.text()?, environment::syntax()?);
        let budget = Arc::new(Budget::default());
        let (text, instructions) = evaluated(&source, &context, &budget)?;
        let [values, output, work] = budget.thousandths();
        let levels = shape::check(&source, &syntax)?;
        let thousandths = |taken: usize, most: usize| taken as u64 * 1000 / most as u64;
        let taken = Taken {
            levels: thousandths(levels, limits::LEVELS),
            text: thousandths(source.len(), limits::TEMPLATE_BYTES),
            values,
            output,
            work,
            instructions: instructions * 1000 / limits::INSTRUCTIONS,
        };
        Ok((text, taken))
    }
}

/// The text of the template `source` with these variables, and the instructions that it took.
fn evaluated(source: &str, context: &Map<String, Value>, budget: &Arc<Budget>) -> Result<(String, u64), ChatError> {
    let code = compile::compile(NAME, source, &environment::syntax()?)?;
    let environment = environment::environment(budget);
    let (mut text, blocks) = (String::new(), BTreeMap::new());
    let root = minijinja::Value::from(Serde(context));
    let mut out = make_string_output(&mut text);
    let end = machinery::eval(&environment, &code, root, &blocks, &mut out, AutoEscape::None);
    let (_, state) = end.map_err(ChatError::from_template)?;
    let instructions = state.fuel_levels().map_or(0, |(taken, _)| taken);
    drop((state, out));
    Ok((text, instructions))
}
