//! Ollama's settings of a model: parameters, a system prompt, the first turns. Flags take
//! precedence, and these settings come before those of the model file. Its template is in the
//! opened file.

use crate::open::Found;
use gguf::Gguf;
use model::chat::Message;
use model::ollama::{Entry, Params};

/// The settings from Ollama's Modelfile; empty for models that are not from Ollama.
pub struct Modelfile {
    entry: Option<Box<Entry>>,
    none: Params,
}

impl Modelfile {
    /// The settings of a model.
    pub fn of(found: Found) -> Self {
        let entry = if let Found::Ollama(entry) = found { Some(entry) } else { None };
        Self { entry, none: Params::default() }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        self.entry.as_ref().map_or(&self.none, |entry| &entry.params)
    }

    /// The context length that Ollama asks for, at most the model's own.
    pub fn context(&self, file: &Gguf) -> Option<u32> {
        let asked = self.params().number("num_ctx").filter(|n| *n >= 1.0)? as u32;
        let key = format!("{}.context_length", file.architecture().ok()?);
        let most = file.get_opt::<u64>(&key).ok().flatten().and_then(|most| u32::try_from(most).ok());
        Some(most.map_or(asked, |most| asked.min(most)))
    }

    /// The number of first tokens that stay when the context is full.
    pub fn keep(&self) -> Option<u32> {
        self.params().number("num_keep").filter(|n| *n >= 0.0).map(|n| n as u32)
    }

    /// The turns that a conversation begins with. `system` takes the place of the system prompt.
    pub fn opening(&self, system: Option<&str>) -> Vec<Message> {
        let own = self.entry.as_ref().and_then(|entry| entry.system.as_deref());
        let turns = self.entry.iter().flat_map(|entry| entry.messages.iter().cloned());
        system.or(own).map(Message::system).into_iter().chain(turns).collect()
    }
}
