//! `weft run`: one answer to a prompt, or a conversation.

mod answer;
mod chat;
mod editor;
mod report;
mod sampling;

use crate::args::{Context, Place, Source};
use crate::exit::{Interrupted, note, usage};
use crate::open::Loaded;
use crate::text;
use answer::{Answer, Sink};
use anyhow::Result;
use model::chat::{Message, RenderOptions};
use model::tokenizer::Special;
use model::{Finish, GenerateOptions, Session};
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Answer a prompt, or chat
///
/// The prompt comes from --prompt or from a pipe; at a terminal without either, a chat begins, in which Ctrl-C stops an answer
/// and /help lists what else there is. Only the answer goes to stdout.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft run -p 'Where does Wren live?'
  weft run qwen3-8b.gguf                                       chat
  weft run qwen3-8b.gguf --system 'Answer in French.' -p 'What is a loom?' --stats
  git diff | weft run qwen3-8b.gguf --system 'Describe this change in a line.'
  weft run qwen3-8b.gguf --raw -p 'Once upon a time' -n 100 --temp 0.9 --seed 7
  weft run -p 'What is 3 + 4?' --json | jq -r .text")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// The prompt; `-` reads it from stdin, as a pipe does anyway
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,

    /// What the model should be and do: the system message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "raw")]
    system: Option<String>,

    /// Tokens of an answer at most [default: until the model or the context ends]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,

    #[command(flatten)]
    context: Context,

    #[command(flatten)]
    place: Place,

    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    stop: Vec<String>,

    /// Continue the prompt as it stands, without the chat template
    #[arg(long)]
    raw: bool,

    /// Ask a model that can think aloud not to
    #[arg(long, conflicts_with = "raw")]
    no_think: bool,

    /// Tell tokens per second on stderr
    #[arg(long)]
    stats: bool,

    /// Print one JSON object: text, tokens, finish, timings
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sampling: sampling::Flags,
}

/// What is asked for.
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
            None if self.json => return Err(usage("--json answers one prompt: give it with --prompt or through a pipe")),
            None if !stdout.is_terminal() => return Err(usage("a chat needs a terminal: give a prompt with --prompt or through a pipe")),
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
    let began = Instant::now();
    let options = args.place.session(args.context.ctx);
    let file = args.source.model_file()?;
    let sampling = args.sampling.resolve(file.file(), args.source.model.is_none())?;
    let Loaded { model, .. } = args.source.load(file, &args.place.device, &options)?;
    let session = args.source.named(model.session(options))?;
    let options = GenerateOptions {
        sampling,
        max_tokens: args.max_tokens.map(|n| n as usize),
        stops: args.stop.clone(),
        ..GenerateOptions::default()
    };
    let mut talk = Talk { args, session, options, messages: vec![], load: began.elapsed() };
    match task {
        Task::Prompt(prompt) => talk.once(&prompt),
        Task::Chat => chat::chat(&mut talk),
    }
}

/// A conversation: what was said, and the session that continues it.
struct Talk {
    args: Args,
    session: Session,
    options: GenerateOptions,
    messages: Vec<Message>,
    load: std::time::Duration,
}

impl Talk {
    /// The ids of the conversation with this prompt at its end.
    fn encode(&mut self, prompt: &str) -> Result<Vec<u32>> {
        let model = self.session.model();
        let tokenizer = model.tokenizer();
        if self.args.raw {
            let ids = tokenizer.encode_prompt(prompt, Special::Parse);
            return Ok(ids);
        }
        if self.messages.is_empty() {
            self.messages.extend(self.args.system.iter().map(Message::system));
        }
        self.messages.push(Message::user(prompt));
        let render = RenderOptions { enable_thinking: self.args.no_think.then_some(false), ..RenderOptions::default() };
        Ok(model.template().encode(tokenizer, &self.messages, &render)?)
    }

    /// Answers a prompt; the conversation remembers both, or neither if that fails.
    fn answer(&mut self, prompt: &str, sink: Sink<'_>) -> Result<Answer> {
        let before = self.messages.len();
        let answer = self.encode(prompt).and_then(|ids| answer::answer(&mut self.session, &ids, self.options.clone(), sink));
        match &answer {
            Ok(answer) if !self.args.raw => self.messages.push(Message::assistant(answer.text.clone())),
            Ok(_) => {}
            Err(_) => self.messages.truncate(before),
        }
        answer
    }

    /// Forgets what was said.
    fn reset(&mut self) {
        self.messages.clear();
        self.session.reset();
    }

    /// One prompt, one answer.
    fn once(&mut self, prompt: &str) -> Result<()> {
        let answer = if self.args.json { self.answer(prompt, &mut |_| Ok(()))? } else { self.show(prompt)? };
        if self.args.json {
            let report = report::json(self, &answer);
            writeln!(std::io::stdout(), "{report}")?;
        } else if answer.finish == Finish::Context {
            note(&format!("the answer is cut: the context of {} positions is full; raise --ctx", self.session.context()));
        }
        if self.args.stats {
            eprintln!("{}", report::stats(self, &answer));
        }
        if answer.finish == Finish::Cancelled { Err(Interrupted.into()) } else { Ok(()) }
    }

    /// Answers on stdout, as the tokens come, and ends the line.
    fn show(&mut self, prompt: &str) -> Result<Answer> {
        let mut out = std::io::stdout();
        let terminal = out.is_terminal();
        let mut ended = true;
        let answer = self.answer(prompt, &mut |text| {
            ended = text.ends_with('\n');
            let shown = if terminal { text::printable(text) } else { text.into() };
            out.write_all(shown.as_bytes())?;
            out.flush()
        });
        if !ended || answer.as_ref().is_ok_and(|a| a.text.is_empty()) {
            writeln!(std::io::stdout())?;
        }
        answer
    }
}
