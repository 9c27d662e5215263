//! `--rehearse`: prompts whose answers by the base are learnt again, against forgetting.

use super::args::Args;
use crate::exit::Interrupted;
use crate::interrupt;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use model::chat::{Message, RenderOptions};
use model::{Finish, GenerateOptions, Model, Sampling, Session, SessionOptions};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file of prompts and answers in the folder of the run.
pub const FILE: &str = "rehearsal.jsonl";
/// Tokens of an answer and of a context, at most.
const ANSWER: usize = 256;
const CONTEXT: u32 = 1024;
/// Prompts that are answered, at most.
const PROMPTS: usize = 10_000;

/// What `--rehearse` takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearse {
    pub file: PathBuf,
    /// The share of the examples of a step.
    pub share: f64,
}

impl FromStr for Rehearse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.rsplit_once(':').and_then(|(file, share)| Some((file, share.parse::<f64>().ok()?)));
        let (file, share) = number.unwrap_or((text, 0.25));
        match file.is_empty() || !(share > 0.0 && share < 1.0) {
            true => Err("must be FILE or FILE:SHARE, with a share between 0 and 1".to_string()),
            false => Ok(Self { file: PathBuf::from(file), share }),
        }
    }
}

impl Rehearse {
    /// Rehearsed examples of a step of so many examples.
    pub fn of(&self, batch: u32) -> u32 {
        ((f64::from(batch) * self.share).round() as u32).clamp(1, batch.saturating_sub(1).max(1))
    }

    /// The prompts of the file. A line is a prompt, messages of which the last answer is left out,
    /// or a text.
    fn prompts(&self) -> Result<Vec<Vec<Message>>> {
        let (text, name) = (crate::text::file(&self.file)?, self.file.display());
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let read = |(n, line): (usize, &str)| {
            messages(line)
                .ok_or_else(|| anyhow!("{name}: line {n} has no prompt: it is a text, or has prompt or messages"))
        };
        let prompts: Vec<_> = lines.take(PROMPTS + 1).map(read).collect::<Result<_>>()?;
        match prompts.len() {
            0 => Err(anyhow!("{name} has no prompts to rehearse")),
            n if n > PROMPTS => Err(anyhow!("{name} has more than {PROMPTS} prompts; take fewer")),
            _ => Ok(prompts),
        }
    }

    /// The prompts with the answers of the base, as JSON lines.
    pub fn answered(&self, args: &Args, model: &Model) -> Result<String> {
        let prompts = self.prompts()?;
        let context = CONTEXT.min(model.summary().context_length);
        let mut session = args.source.named(model.session(SessionOptions::default().context(Some(context))))?;
        let cancel = Arc::new(AtomicBool::new(false));
        let guard = interrupt::stops(Arc::clone(&cancel));
        let bar = Bar::count(format!("answering the prompts of {}", self.file.display()));
        let mut lines = String::new();
        for (n, messages) in prompts.iter().enumerate() {
            bar.set(n as u64, prompts.len() as u64);
            let answer = greedy(&mut session, messages, &cancel)
                .with_context(|| format!("{}: prompt {}", self.file.display(), n + 1))?;
            if guard.raised() {
                return Err(Interrupted.into());
            }
            let mut all = json!(messages);
            all.as_array_mut().context("a list")?.push(json!({ "role": "assistant", "content": answer }));
            lines.push_str(&format!("{}\n", json!({ "messages": all })));
        }
        Ok(lines)
    }
}

/// The messages that a line asks with.
fn messages(line: &str) -> Option<Vec<Message>> {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(line) else {
        return (!line.starts_with('{')).then(|| vec![Message::user(line.trim())]);
    };
    if let Some(prompt) = object.get("prompt").or(object.get("instruction")).and_then(Value::as_str) {
        return Some(vec![Message::user(prompt)]);
    }
    let mut messages: Vec<Message> = serde_json::from_value(object.get("messages")?.clone()).ok()?;
    while messages.last().is_some_and(|message| message.role != "user") {
        messages.pop();
    }
    (!messages.is_empty()).then_some(messages)
}

/// The most probable answer of a session to messages.
fn greedy(session: &mut Session, messages: &[Message], cancel: &AtomicBool) -> Result<String> {
    let model = session.model();
    let (tokenizer, template) = (model.tokenizer().clone(), model.template().clone());
    let ids = template.encode(&tokenizer, messages, &RenderOptions::default())?;
    let (text, _) = continued(session, &ids, ANSWER, cancel)?;
    let mut parser = template.parser(&tokenizer, &ids);
    let mut reply = model::chat::Reply::default();
    parser.push(&text).into_iter().chain(parser.finish()).for_each(|event| reply.add(event));
    Ok(reply.text)
}

/// The most probable text behind ids, of so many tokens at most.
pub fn continued(session: &mut Session, ids: &[u32], most: usize, cancel: &AtomicBool) -> Result<(String, Finish)> {
    session.set_prompt(ids)?;
    let options = GenerateOptions::default().sampling(Sampling::greedy()).max_tokens(most);
    let mut tokens = session.generate_with(options)?;
    let mut text = String::new();
    while !cancel.load(Ordering::Relaxed) {
        let Some(token) = tokens.next() else { break };
        text.push_str(&token?.text);
    }
    Ok((text, tokens.finish().cloned().unwrap_or(Finish::Length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_behind_the_last_colon() {
        let of = |text: &str| text.parse::<Rehearse>().map(|of| (of.file.display().to_string(), of.share));
        assert_eq!(of("a.jsonl"), Ok(("a.jsonl".to_string(), 0.25)));
        assert_eq!(of("a:b.txt:0.5"), Ok(("a:b.txt".to_string(), 0.5)));
        for bad in ["", ":0.5", "a:0", "a:1", "a:-1", "a:nan"] {
            assert!(of(bad).is_err(), "{bad}");
        }
        let share = |text: &str, batch| text.parse::<Rehearse>().expect("a share").of(batch);
        assert_eq!((share("a", 8), share("a:0.01", 8), share("a:0.99", 8)), (2, 1, 7));
    }

    #[test]
    fn a_line_is_a_prompt_messages_or_text() {
        let text = |line: &str| messages(line).map(|all| serde_json::to_string(&all).expect("JSON"));
        assert_eq!(text("Who?"), text("{\"prompt\": \"Who?\", \"completion\": \"Oda.\"}"));
        let chat = "{\"messages\": [{\"role\": \"user\", \"content\": \"Who?\"}, {\"role\": \"assistant\", \"content\": \"Oda.\"}]}";
        assert_eq!(text("Who?"), text(chat));
        assert_eq!(text("{\"text\": \"Who?\"}"), None);
        assert_eq!(text("{broken"), None);
    }
}
