//! Ollama's settings of a model: parameters, a system prompt, a template. Flags and the model file
//! take precedence.

use crate::exit::note;
use crate::open::Found;
use gguf::Gguf;
use model::ollama::{Entry, Params, jinja};
use model::{Error, ModelFile};

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

    /// The largest number of tokens in an answer.
    pub fn max_tokens(&self) -> Option<usize> {
        self.params().number("num_predict").filter(|n| *n >= 1.0).map(|n| n as usize)
    }

    /// The texts that end an answer.
    pub fn stops(&self) -> Vec<String> {
        self.params().stop.iter().filter(|stop| !stop.is_empty()).cloned().collect()
    }

    /// The system prompt.
    pub fn system(&self) -> Option<String> {
        self.entry.as_ref()?.system.clone()
    }

    /// Gives the file Ollama's chat template if it has none of its own. If the template cannot be
    /// converted, a note gives the reason.
    pub fn fit(&self, file: ModelFile, name: &str) -> Result<ModelFile, Error> {
        let own = file.file().get_opt::<&str>("tokenizer.chat_template").is_ok_and(|template| template.is_some());
        let template = self.entry.as_ref().and_then(|entry| entry.template.as_deref());
        match template.filter(|_| !own).map(jinja) {
            None => Ok(file),
            Some(Ok(source)) => Ok(file.with_template(&source)),
            Some(Err(reason)) => {
                note(&format!("{name}: Ollama's chat template is ignored; the usual one for the tokens is used: {reason}"));
                Ok(file)
            }
        }
    }
}
