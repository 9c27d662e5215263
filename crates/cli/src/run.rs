//! `weft run`: answers one prompt, or chats.

mod answer;
mod chat;
mod editor;
mod lora;
mod modelfile;
mod reopen;
mod report;
mod sampling;
mod saved;
mod screen;
mod tools;

use crate::args::{Context, Place, Source};
use crate::exit::{self, Interrupted, note, usage};
use crate::lora::Adapters;
use crate::{interrupt, text};
use answer::{Answer, Sink};
use anyhow::{Result, anyhow};
use clap::ValueHint;
use model::chat::{Format, Message, Parser, RenderOptions};
use model::tokenizer::Special;
use model::{Finish, GenerateOptions, ModelFile, Session, SessionOptions};
use modelfile::Modelfile;
use screen::Screen;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answer a prompt, or chat
///
/// The prompt comes from --prompt or from a pipe. At a terminal without a prompt, a chat begins:
/// Ctrl-C stops an answer, /help lists the commands. Only the answer goes to stdout; the model's
/// thinking goes to stderr. A tool call is printed as one line of JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft run -p 'Where does Wren live?'
  weft run qwen3-8b.gguf                                       chat
  weft run gemma4:e2b                                          chat with a model of Ollama
  weft run qwen3-8b.gguf --system 'Answer in French.' -p 'What is a loom?' --stats
  git diff | weft run qwen3-8b.gguf --system 'Describe this change in a line.'
  weft run qwen3-8b.gguf --raw -p 'Once upon a time' -n 100 --temp 0.9 --seed 7
  weft run qwen3-8b.gguf --no-think -p 'Name three looms.'
  weft run qwen3-8b.gguf --tools tools.json -p 'Is it raining in Lodz?' --json | jq .tool_calls
  weft run qwen3-8b.gguf --lora french/:0.8 --lora terse.gguf  apply adapters
  weft run -p 'What is 3 + 4?' --json | jq -r .text
  weft run qwen3-8b.gguf --save-session book.weft < book.txt
  weft run qwen3-8b.gguf --load-session book.weft -p 'Who is the murderer?'  without rereading
  weft run qwen3-8b.gguf --ctx 8192 --shift-context            chat beyond the context length")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// The prompt; `-` reads it from stdin. Without this flag, piped input is the prompt
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,

    /// The system message: how the model should behave
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["raw", "load_session"])]
    system: Option<String>,

    /// Largest number of tokens in an answer [default: until the model ends it or the context is
    /// full]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,

    #[command(flatten)]
    context: Context,

    /// When the context is full, keep its first KEEP tokens [KEEP: Ollama's, else 0], drop the
    /// older half of the others, read the rest again and go on. Without this flag the answer ends
    /// there
    #[arg(long, value_name = "KEEP", num_args = 0..=1, require_equals = true)]
    shift_context: Option<Option<u32>>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    adapters: Adapters,

    /// Continue the conversation saved in this file, without reading it again; its sampling
    /// parameters apply unless flags change them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    load_session: Option<PathBuf>,

    /// Save the conversation to this file at the end, for --load-session; the file contains the KV
    /// cache and is as large as it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    save_session: Option<PathBuf>,

    /// End the answer before this text, or at the control token with exactly this name; may be
    /// given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    /// Continue the text of the prompt, without the chat template
    #[arg(long)]
    raw: bool,

    /// Render by the chat template that the file has under this name; `weft inspect` lists the
    /// names
    #[arg(long, value_name = "NAME", conflicts_with = "raw")]
    chat_template: Option<String>,

    /// Ask the model to think before it answers, if its template supports this
    #[arg(long, conflicts_with = "raw")]
    think: bool,

    /// Ask the model not to think before it answers, if its template supports this
    #[arg(long, conflicts_with_all = ["raw", "think"])]
    no_think: bool,

    /// File with the functions (tools) that the model may call: a JSON array of their schemas
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath, conflicts_with = "raw")]
    tools: Option<PathBuf>,

    /// Print loading times and tokens per second on stderr
    #[arg(long)]
    stats: bool,

    /// Print one JSON object: text, thinking, tool_calls, tokens, finish, timings
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sampling: sampling::Flags,
}

/// The work that the command line asks for.
enum Task {
    Prompt(String),
    Chat,
}

impl Args {
    fn task(&self) -> Result<Task> {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let text = match self.prompt.as_deref() {
            Some("-") => text::stdin()?,
            Some(text) => text.to_string(),
            None if !stdin.is_terminal() => text::stdin()?,
            None if self.json => {
                return Err(usage("--json answers one prompt: give it with --prompt or through a pipe"));
            }
            None if !stdout.is_terminal() => {
                return Err(usage("a chat needs a terminal: give a prompt with --prompt or through a pipe"));
            }
            None => return Ok(Task::Chat),
        };
        let piped = self.prompt.as_deref().is_none_or(|p| p == "-");
        let text = if piped { text::without_line_end(&text).to_string() } else { text };
        if text.trim().is_empty() {
            return Err(usage("the prompt is empty; give it with --prompt or through a pipe"));
        }
        Ok(Task::Prompt(text))
    }
}

pub fn run(args: Args) -> Result<()> {
    let task = args.task()?;
    args.save_session.as_deref().map_or(Ok(()), saved::writable)?;
    let before = args.load_session.as_deref().map(saved::open).transpose()?;
    let began = Instant::now();
    let tools = args.tools.as_deref().map(tools::read).transpose()?;
    let file = args.source.model_file()?;
    let modelfile = Modelfile::of(args.source.find()?);
    let context = args.context.ctx.or_else(|| modelfile.context(file.file()));
    let shift = args.shift_context.map(|keep| keep.or(modelfile.keep()).unwrap_or(0));
    let opening = args.place.session(context).shift(shift);
    let sampling = args.sampling.resolve(file.file(), args.source.model.is_none(), modelfile.params())?;
    let render = RenderOptions::default().tools(tools).enable_thinking(args.thinking());
    let file = args.with_template(file)?;
    args.check_template(&file)?;
    let loaded = args.source.load(file, &args.place.device, &opening, &args.adapters, true)?;
    let mut session = args.source.named(loaded.session(opening.clone()))?;
    let messages = before.map_or(Ok(vec![]), |before| before.load(&mut session, args.raw))?;
    let sampling = session.sampling().map_or(sampling, |saved| args.sampling.over(saved));
    let model = session.model();
    let format = if args.raw { Format::Plain } else { model.template().format() };
    let options = GenerateOptions::default()
        .sampling(sampling)
        .max_tokens(args.max_tokens.map(|n| n as usize).or_else(|| modelfile.params().max_tokens()))
        .stops(if args.stop.is_empty() { modelfile.params().stops() } else { args.stop.clone() })
        .shown(format.controls(model.tokenizer()));
    let first = modelfile.opening(args.system.as_deref());
    let (load, weights, _preparing) = (began.elapsed(), loaded.weights, loaded.preparing);
    // From here on the session alone holds the model, so that a lost device can be closed.
    drop((loaded.model, loaded.checked, loaded.adapters));
    let mut talk = Talk { args, session, opening, options, render, first, messages, load, weights };
    let result = match &task {
        Task::Prompt(prompt) => talk.once(prompt),
        Task::Chat => chat::chat(&mut talk),
    };
    match (result, task) {
        (Err(error), Task::Prompt(_)) if !error.is::<Interrupted>() => Err(error),
        // An error that ends a chat, such as a closed terminal, leaves complete turns: save them.
        (Err(error), Task::Chat) if !error.is::<Interrupted>() => {
            talk.save().unwrap_or_else(|error| note(&exit::line(&error)));
            Err(error)
        }
        (ended, _) => talk.save().and(ended),
    }
}

impl Args {
    fn thinking(&self) -> Option<bool> {
        if self.think { Some(true) } else { self.no_think.then_some(false) }
    }

    /// The file with the chat template that `--chat-template` names.
    fn with_template(&self, file: ModelFile) -> Result<ModelFile> {
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
    fn check_template(&self, file: &ModelFile) -> Result<()> {
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

/// A conversation: its messages, and the session that continues it.
struct Talk {
    args: Args,
    session: Session,
    /// The options of the session, to choose a device again.
    opening: SessionOptions,
    options: GenerateOptions,
    render: RenderOptions,
    /// The turns that a conversation begins with: the system message, and those of Ollama.
    first: Vec<Message>,
    messages: Vec<Message>,
    /// The time from the start until the session exists, and the time that the weights took.
    load: Duration,
    weights: Duration,
}

impl Talk {
    /// The ids of the conversation with this message at its end, and the parser for the answer.
    fn encode(&mut self, message: Message) -> Result<(Vec<u32>, Parser)> {
        let model = self.session.model();
        let (tokenizer, template) = (model.tokenizer(), model.template());
        if self.args.raw {
            let prompt = message.content.as_ref().and_then(|content| content.as_str()).unwrap_or_default();
            let ids = match self.args.load_session {
                Some(_) => [self.session.tokens(), &tokenizer.encode(prompt, Special::Parse)?].concat(),
                None => tokenizer.encode_prompt(prompt, Special::Parse)?,
            };
            return Ok((ids, Parser::new(Format::Plain)));
        }
        if self.messages.is_empty() {
            self.messages.extend(self.first.iter().cloned());
        }
        self.messages.push(message);
        let ids = template.encode(tokenizer, &self.messages, &self.render)?;
        let parser = template.parser(tokenizer, &ids).with_tools(self.render.tools.clone());
        Ok((ids, parser))
    }

    /// Answers a message. The conversation keeps the message and the answer, or neither after an
    /// error. If the device was lost before, it is opened again first.
    fn answer(&mut self, message: Message, sink: Sink<'_>) -> Result<Answer> {
        self.reopen()?;
        let before = self.messages.len();
        let encoded = self.encode(message);
        let answer = encoded
            .and_then(|(ids, parser)| answer::answer(&mut self.session, &ids, self.options.clone(), parser, sink));
        match &answer {
            Ok(answer) if !self.args.raw => self.messages.push(answer.reply.to_message()),
            Ok(_) => {}
            Err(_) => self.messages.truncate(before),
        }
        answer
    }

    /// Prints a note if the context has shifted since its number of dropped tokens was `dropped`.
    fn tell_shift(&self, dropped: usize) {
        if self.session.dropped() > dropped {
            note(&format!(
                "the context was full: the oldest {} tokens of the conversation are forgotten",
                self.session.dropped()
            ));
        }
    }

    /// Clears the conversation.
    fn reset(&mut self) {
        self.messages.clear();
        self.session.reset();
    }

    /// Saves the conversation to the file of --save-session, if there is one.
    fn save(&mut self) -> Result<()> {
        let Some(path) = &self.args.save_session else { return Ok(()) };
        // The first signal waits for the file.
        let _guard = interrupt::stops(Arc::default());
        let lost = self.session.model().executor().is_lost();
        match saved::save(&mut self.session, &self.messages, path) {
            // The device was lost while the cache was read: the tokens are saved without it.
            Err(_) if !lost && self.session.model().executor().is_lost() => {
                saved::save(&mut self.session, &self.messages, path)
            }
            saved => saved,
        }
    }

    /// Answers one prompt.
    fn once(&mut self, prompt: &str) -> Result<()> {
        let (message, dropped) = (Message::user(prompt), self.session.dropped());
        let answer = if self.args.json { self.answer(message, &mut |_| Ok(()))? } else { self.show(message)? };
        if self.args.json {
            self.tell_shift(dropped);
            let report = report::json(self, &answer);
            writeln!(std::io::stdout(), "{report}")?;
        } else if answer.finish == Finish::Context {
            note(&format!(
                "the answer is cut off: the context of {} tokens is full; raise --ctx",
                self.session.context()
            ));
        }
        if self.args.stats {
            eprintln!("{}", report::stats(self, &answer));
        }
        if answer.finish == Finish::Cancelled { Err(Interrupted.into()) } else { Ok(()) }
    }

    /// Prints the answer to stdout token by token, and ends the line.
    fn show(&mut self, message: Message) -> Result<Answer> {
        let (mut screen, dropped) = (Screen::new(), self.session.dropped());
        let answer = self.answer(message, &mut |event| screen.show(event));
        screen.end(answer.is_ok())?;
        self.tell_shift(dropped);
        answer
    }
}
