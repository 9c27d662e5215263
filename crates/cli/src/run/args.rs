//! The arguments of `weft run`.

use super::sampling;
use crate::args::{Context, Place, Source, Threads};
use crate::exit::{note, usage};
use crate::lora::Adapters;
use crate::text;
use anyhow::{Result, anyhow};
use clap::ValueHint;
use model::ModelFile;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Answer a prompt, or chat
///
/// The prompt comes from --prompt or from a pipe. At a terminal without a prompt, a chat begins:
/// Ctrl-C stops an answer, /help lists the commands. Only the answer goes to stdout; the model's
/// thinking goes to stderr. A tool call is printed as one line of JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft run -p 'Where does Wren live?'
  weft run qwen3-8b                                            chat
  weft run qwen3-8b 'What is a loom?'
  weft run gemma4:e2b                                          chat with a model of Ollama
  weft run qwen3-8b --system 'Answer in French.' -p 'What is a loom?' --stats
  git diff | weft run qwen3-8b --system 'Describe this change in a line.'
  weft run qwen3-8b --raw -p 'Once upon a time' -n 100 --temp 0.9 --seed 7
  weft run qwen3-8b --no-think -p 'Name three looms.'
  weft run qwen3-8b --tools tools.json -p 'Is it raining in Lodz?' --json | jq .tool_calls
  weft run qwen3-8b --lora french/:0.8 --lora terse.gguf       apply adapters
  weft run -p 'What is 3 + 4?' --json | jq -r .text
  weft run qwen3-8b --save-session book.weft < book.txt
  weft run qwen3-8b --load-session book.weft -p 'Who is the murderer?'       without rereading
  weft run qwen3-8b --ctx 8192 --shift-context                 chat beyond the context length")]
pub struct Args {
    // First, so that its heading stands before that of the machine.
    #[command(flatten)]
    pub sampling: sampling::Flags,

    #[command(flatten)]
    pub source: Source,

    /// The prompt, behind MODEL; piped input comes before it
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "file"])]
    pub words: Vec<String>,

    /// The prompt; `-` reads it from stdin. Without a prompt, piped input is the prompt
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,

    /// File with the prompt
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "prompt")]
    pub file: Option<PathBuf>,

    /// The system message: how the model should behave
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["raw", "load_session"])]
    pub system: Option<String>,

    /// Largest number of tokens in an answer [default: until the model ends it or the context is
    /// full]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,

    #[command(flatten)]
    pub context: Context,

    /// When the context is full, keep its first KEEP tokens [KEEP: Ollama's, else 0], drop the
    /// older half of the others, read the rest again and go on. Without this flag the answer ends
    /// there
    #[arg(long, value_name = "KEEP", num_args = 0..=1, require_equals = true)]
    pub shift_context: Option<Option<u32>>,

    #[command(flatten)]
    pub place: Place,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub adapters: Adapters,

    /// Continue the conversation saved in this file, without reading it again; its sampling
    /// parameters apply unless flags change them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub load_session: Option<PathBuf>,

    /// Save the conversation to this file at the end, for --load-session; the file contains the KV
    /// cache and is as large as it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save_session: Option<PathBuf>,

    /// End the answer before this text, or at the control token with exactly this name; may be
    /// given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,

    /// Continue the text of the prompt, without the chat template
    #[arg(long)]
    pub raw: bool,

    /// Render by the chat template that the file has under this name; `weft inspect` lists the
    /// names
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    pub chat_template: Option<String>,

    /// Ask the model to think before it answers, if its template supports this
    #[arg(long, conflicts_with = "raw")]
    pub think: bool,

    /// Ask the model not to think before it answers, if its template supports this
    #[arg(long, conflicts_with_all = ["raw", "think"])]
    pub no_think: bool,

    /// File with the functions (tools) that the model may call: a JSON array of their schemas
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath, conflicts_with = "raw")]
    pub tools: Option<PathBuf>,

    /// Print loading times and tokens per second on stderr
    #[arg(long)]
    pub stats: bool,

    /// Print one JSON object: text, thinking, tool_calls, tokens, finish, timings
    #[arg(long)]
    pub json: bool,
}

/// The work that the command line asks for.
pub enum Task {
    Prompt(String),
    Chat,
}

impl Args {
    /// The work of these arguments: a prompt, also from a pipe, or a chat.
    pub fn task(&self) -> Result<Task> {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let text = match (self.prompt.as_deref(), &self.file) {
            (Some("-"), _) => text::stdin()?,
            (Some(text), _) => text.to_string(),
            (None, Some(file)) => text::file(file)?,
            (None, None) if !self.words.is_empty() => self.typed(stdin.is_terminal())?,
            _ if !stdin.is_terminal() => text::stdin()?,
            _ if self.json => {
                return Err(usage("--json answers one prompt: give it with --prompt or through a pipe"));
            }
            _ if !stdout.is_terminal() => {
                return Err(usage("a chat needs a terminal: give a prompt with --prompt or through a pipe"));
            }
            _ => return Ok(Task::Chat),
        };
        let piped = self.words.is_empty() && self.prompt.as_deref().is_none_or(|p| p == "-");
        let text = if piped { text::without_line_end(&text).to_string() } else { text };
        if text.trim().is_empty() {
            return Err(usage("the prompt is empty; give it with --prompt or through a pipe"));
        }
        Ok(Task::Prompt(text))
    }

    /// The words behind MODEL. What comes through a pipe stands before them.
    fn typed(&self, at_terminal: bool) -> Result<String> {
        let words = self.words.join(" ");
        let piped = if at_terminal { String::new() } else { text::stdin()? };
        let piped = piped.trim_end();
        Ok(if piped.is_empty() { words } else { format!("{piped}\n\n{words}") })
    }
}

impl Args {
    /// Whether the model is asked to think, if a flag says so.
    pub fn thinking(&self) -> Option<bool> {
        if self.think { Some(true) } else { self.no_think.then_some(false) }
    }

    /// The file with the chat template that `--chat-template` names.
    pub fn with_template(&self, file: ModelFile) -> Result<ModelFile> {
        let Some(name) = &self.chat_template else { return Ok(file) };
        let names = file.template().names().collect::<Vec<_>>().join(", ");
        let has = if names.is_empty() {
            "the file has one template, without a name".into()
        } else {
            format!("the file has {names}")
        };
        let missing = || anyhow!("{}: no chat template is named {name}; {has}", self.source.name());
        file.with_named_template(name).ok_or_else(missing)
    }

    /// Fails if tools are given and the chat template has none; prints a note if `--think` or
    /// `--no-think` has no effect.
    pub fn check_template(&self, file: &ModelFile) -> Result<()> {
        let (template, name) = (file.template(), self.source.name());
        if self.tools.is_some() && !template.knows_tools() {
            return Err(anyhow!(
                "{name}: the chat template does not support tools; describe them in the prompt instead"
            ));
        }
        if let Some(on) = self.thinking().filter(|_| !template.knows_thinking()) {
            let flag = if on { "--think" } else { "--no-think" };
            note(&format!("{name}: the chat template has no switch for thinking; {flag} has no effect"));
        }
        Ok(())
    }
}
