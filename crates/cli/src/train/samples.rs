//! `--samples`: what the model answers to held-out prompts while it learns.

use super::args::Args;
use super::examples::Examples;
use super::rehearse::continued;
use crate::text::printable;
use anyhow::Result;
use model::{AdapterFile, Applied, Model, Session, SessionOptions};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use train::NO_TARGET;

/// Prompts, if no flag names a number.
const SAMPLES: u32 = 2;
/// Tokens of an answer, at most.
const ANSWER: usize = 64;
/// Characters of a line of a prompt or an answer that people see.
const SHOWN: usize = 160;

/// Held-out prompts, and the session that answers them.
pub struct Samples {
    session: Session,
    asked: Vec<Asked>,
}

struct Asked {
    ids: Vec<u32>,
    prompt: String,
    expected: String,
}

/// A prompt with the answer that its example has, and with that of the model.
pub struct Sample {
    pub prompt: String,
    pub expected: String,
    pub answer: String,
}

impl Samples {
    /// The first held-out examples that have a prompt.
    ///
    /// # Errors
    /// Errors of the data, and of the session, such as too little memory for it.
    pub fn new(args: &Args, model: &Model, examples: &Examples) -> Result<Self> {
        let (mut asked, most) = (vec![], args.samples.unwrap_or(SAMPLES) as usize);
        for n in 0.. {
            let Some(documents) = examples.held_out(n, 1)?.filter(|_| asked.len() < most) else {
                break;
            };
            let prompts = documents.iter().filter_map(|document| {
                let first = document.targets.iter().position(|target| *target != NO_TARGET)?;
                let learnt = document.targets[first..].iter().copied().take_while(|target| *target != NO_TARGET);
                let tokenizer = model.tokenizer();
                let is_text = |id: &u32| !tokenizer.kind(*id).is_some_and(|kind| kind.is_control());
                let text = |ids: &[u32]| tokenizer.decode(&ids.iter().copied().filter(is_text).collect::<Vec<_>>());
                let learnt: Vec<u32> = learnt.collect();
                let ids = document.ids[..=first].to_vec();
                (first > 0).then(|| Asked { prompt: text(&ids), expected: text(&learnt), ids })
            });
            asked.extend(prompts.take(1));
        }
        let longest = asked.iter().map(|asked| asked.ids.len()).max().unwrap_or(0) + ANSWER;
        let context = u32::try_from(longest).unwrap_or(u32::MAX).min(model.summary().context_length);
        let session = args.source.named(model.session(SessionOptions::default().context(Some(context))))?;
        Ok(Self { session, asked })
    }

    /// The answers with the adapter in this folder.
    pub fn answers(&mut self, adapter: &Path, cancel: &AtomicBool) -> Result<Vec<Sample>> {
        let adapter = self.session.model().adapter(&AdapterFile::open(adapter)?)?;
        self.session.set_adapters(vec![Applied { adapter, scale: 1.0 }])?;
        let Self { session, asked } = self;
        let answer = |Asked { ids, prompt, expected }: &Asked| {
            let (answer, _) = continued(session, ids, ANSWER, cancel)?;
            Ok(Sample { prompt: prompt.clone(), expected: expected.clone(), answer })
        };
        asked.iter().map(answer).collect()
    }
}

impl Sample {
    pub fn json(&self) -> Value {
        json!({ "prompt": self.prompt, "expected": self.expected, "answer": self.answer })
    }

    /// Lines for people.
    pub fn lines(&self) -> String {
        let line = |text: &str| {
            let whole = crate::exit::one_line(&printable(text));
            let end: String = whole.chars().rev().take(SHOWN).collect::<Vec<_>>().into_iter().rev().collect();
            if end.len() < whole.len() { format!("..{end}") } else { whole }
        };
        let Self { prompt, expected, answer } = self;
        format!("          {}\n          -> {} (example: {})", line(prompt), line(answer), line(expected))
    }
}
