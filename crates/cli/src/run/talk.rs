//! A conversation with a model.

use super::answer::{self, Answer, Sink};
use super::args::Args;
use super::saved::{self, Conversation, Saved};
use crate::exit::note;
use crate::interrupt;
use crate::progress::Bar;
use anyhow::Result;
use model::chat::{Format, Message, Parser, RenderOptions};
use model::tokenizer::Special;
use model::{GenerateOptions, Session, SessionOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A conversation: its messages, and the session that continues it.
pub struct Talk {
    pub args: Args,
    pub session: Session,
    /// The options of the session, to choose a device again.
    pub opening: SessionOptions,
    pub options: GenerateOptions,
    pub render: RenderOptions,
    /// The turns that a conversation begins with: the system message, and those of Ollama.
    pub first: Vec<Message>,
    pub messages: Vec<Message>,
    /// The last message, if it has no answer because of an error.
    pub failed: Option<Message>,
    /// The settings that were changed in the chat and that a saved conversation keeps.
    pub changed: Vec<(String, String)>,
    /// Whether the seed was given, by a flag, by Ollama or by `/set`.
    pub seeded: bool,
    /// Whether lines of answers break between words at a terminal.
    pub wraps: bool,
    /// The time from the start until the session exists, and the time that the weights took.
    pub load: Duration,
    pub weights: Duration,
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
    pub fn answer(&mut self, message: Message, sink: Sink<'_>) -> Result<Answer> {
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
    pub fn tell_shift(&self, dropped: usize) {
        if self.session.dropped() > dropped {
            note(&format!(
                "the context was full: the oldest {} tokens of the conversation are forgotten",
                self.session.dropped()
            ));
        }
    }

    /// The index of the last message of one of these roles.
    pub fn last(&self, roles: &[&str]) -> Option<usize> {
        self.messages.iter().rposition(|message| roles.contains(&message.role.as_str()))
    }

    /// The system message of the conversation.
    pub fn system(&self) -> Option<&str> {
        let turns = if self.messages.is_empty() { &self.first } else { &self.messages };
        turns.first().filter(|turn| turn.role == "system")?.content.as_ref()?.as_str()
    }

    /// The name of the model: the file's own, else that of the file.
    pub fn name(&self) -> String {
        let model = self.session.model();
        match (model.file().get_opt::<&str>("general.name"), model.file().path()) {
            (Ok(Some(name)), _) => name.to_string(),
            (_, Some(path)) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            (_, None) => model.summary().architecture.to_string(),
        }
    }

    /// Clears the conversation.
    pub fn reset(&mut self) {
        self.failed = None;
        self.messages.clear();
        self.session.reset();
    }

    /// Continues a saved conversation. After an error the conversation stays.
    pub fn load_from(&mut self, saved: Saved) -> Result<()> {
        self.reopen()?;
        let path = saved.path.clone();
        let Conversation { messages, settings } = saved.load(&mut self.session, self.args.raw)?;
        if self.args.raw {
            self.args.load_session = Some(path);
        }
        (self.messages, self.failed) = (messages, None);
        self.changed.clear();
        if let Some(sampling) = self.session.sampling() {
            self.options.sampling = sampling.clone();
        }
        self.adopt(&settings);
        Ok(())
    }

    /// Saves the conversation to the file of --save-session, if there is one.
    pub fn save(&mut self) -> Result<()> {
        match self.args.save_session.clone() {
            Some(path) => self.save_to(&path),
            None => Ok(()),
        }
    }

    /// Saves the conversation to a file.
    pub fn save_to(&mut self, path: &Path) -> Result<()> {
        let _bar = Bar::bytes(format!("saving {}", path.display()));
        // The first signal waits for the file.
        let _guard = interrupt::stops(Arc::default());
        let lost = self.session.model().executor().is_lost();
        self.session.set_note(saved::note(&self.messages, &self.changed));
        match saved::save(&mut self.session, path) {
            // The device was lost while the cache was read: the tokens are saved without it.
            Err(_) if !lost && self.session.model().executor().is_lost() => saved::save(&mut self.session, path),
            saved => saved,
        }
    }
}
