//! `weft run`: answers one prompt, or chats.

mod answer;
mod args;
mod chat;
mod commands;
mod editor;
mod lora;
mod modelfile;
mod reopen;
mod report;
mod sampling;
mod saved;
mod screen;
mod settings;
mod show;
mod state;
mod talk;
mod tools;
mod wrap;

use crate::exit::{self, Interrupted, note};
use anyhow::Result;
pub use args::Args;
use args::Task;
use model::chat::{Format, Message, RenderOptions};
use model::{Finish, GenerateOptions};
use modelfile::Modelfile;
use std::io::Write;
use std::time::Instant;
use talk::Talk;

pub fn run(args: Args) -> Result<()> {
    args.threads.apply()?;
    // A missing model is told before a prompt is read.
    let found = args.source.find()?;
    let task = args.task()?;
    args.save_session.as_deref().map_or(Ok(()), saved::writable)?;
    let before = args.load_session.as_deref().map(saved::open).transpose()?;
    let began = Instant::now();
    let tools = args.tools.as_deref().map(tools::read).transpose()?;
    let file = args.source.model_file()?;
    let modelfile = Modelfile::of(found);
    let context = args.context.ctx.or_else(|| modelfile.context(file.file()));
    let shift = args.shift_context.map(|keep| keep.or(modelfile.keep()).unwrap_or(0));
    let opening = args.place.session(context).shift(shift);
    let sampling = args.sampling.resolve(file.file(), args.source.is_default(), modelfile.params())?;
    let render = RenderOptions::default().tools(tools).enable_thinking(args.thinking());
    let file = args.with_template(file)?;
    args.check_template(&file)?;
    let loaded = args.source.load(file, &args.place.device, &opening, &args.adapters, true)?;
    let mut session = args.source.named(loaded.session(opening.clone()))?;
    let before = before.map(|before| before.load(&mut session, args.raw)).transpose()?.unwrap_or_default();
    let sampling = session.sampling().map_or(sampling, |saved| args.sampling.over(saved));
    let model = session.model();
    let format = if args.raw { Format::Plain } else { model.template().format() };
    let options = GenerateOptions::default()
        .sampling(sampling)
        .max_tokens(args.max_tokens.map(|n| n as usize).or_else(|| modelfile.params().max_tokens()))
        .stops(if args.stop.is_empty() { modelfile.params().stops() } else { args.stop.clone() })
        .shown(format.controls(model.tokenizer()));
    let first = modelfile.opening(args.system.as_deref());
    let seeded = args.sampling.has_seed() || modelfile.params().seed().is_some();
    let (load, weights, _preparing) = (began.elapsed(), loaded.weights, loaded.preparing);
    // From here on the session alone holds the model, so that a lost device can be closed.
    drop((loaded.model, loaded.checked, loaded.adapters));
    let (messages, failed, changed, wraps) = (before.messages, None, vec![], true);
    let mut talk = Talk {
        args,
        session,
        opening,
        options,
        render,
        first,
        messages,
        failed,
        changed,
        seeded,
        wraps,
        load,
        weights,
    };
    talk.adopt(&before.settings);
    let result = match &task {
        Task::Prompt(prompt) => once(&mut talk, prompt),
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

/// Answers one prompt.
fn once(talk: &mut Talk, prompt: &str) -> Result<()> {
    let (message, dropped) = (Message::user(prompt), talk.session.dropped());
    let answer = if talk.args.json { talk.answer(message, &mut |_| Ok(()))? } else { talk.show(message)? };
    if talk.args.json {
        talk.tell_shift(dropped);
        let report = report::json(talk, &answer);
        writeln!(std::io::stdout(), "{report}")?;
    } else if answer.finish == Finish::Context {
        note(&format!("the answer is cut off: the context of {} tokens is full; raise --ctx", talk.session.context()));
    }
    if talk.args.stats {
        eprintln!("{}", report::stats(talk, &answer));
    }
    if answer.finish == Finish::Cancelled { Err(Interrupted.into()) } else { Ok(()) }
}
