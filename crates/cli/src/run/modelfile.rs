//! What Ollama keeps beside a model: parameters, a system prompt, a template. Flags and the file itself come first.

use crate::exit::note;
use crate::open::Found;
use gguf::Gguf;
use model::ollama::{Entry, Params, jinja};
use model::{Error, ModelFile};

/// What a Modelfile says; nothing for models that are not Ollama's.
pub struct Modelfile {
    entry: Option<Box<Entry>>,
    none: Params,
}

impl Modelfile {
    /// That of a model.
    pub fn of(found: Found) -> Self {
        let entry = if let Found::Ollama(entry) = found { Some(entry) } else { None };
        Self { entry, none: Params::default() }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        self.entry.as_ref().map_or(&self.none, |entry| &entry.params)
    }

    /// The context that is asked for, as far as the model has it.
    pub fn context(&self, file: &Gguf) -> Option<u32> {
        let asked = self.params().number("num_ctx").filter(|n| *n >= 1.0)? as u32;
        let key = format!("{}.context_length", file.architecture().ok()?);
        let most = file.get_opt::<u64>(&key).ok().flatten().and_then(|most| u32::try_from(most).ok());
        Some(most.map_or(asked, |most| asked.min(most)))
    }

    /// Tokens of an answer at most.
    pub fn max_tokens(&self) -> Option<usize> {
        self.params().number("num_predict").filter(|n| *n >= 1.0).map(|n| n as usize)
    }

    /// Texts that end an answer.
    pub fn stops(&self) -> Vec<String> {
        self.params().stop.iter().filter(|stop| !stop.is_empty()).cloned().collect()
    }

    /// The system prompt.
    pub fn system(&self) -> Option<String> {
        self.entry.as_ref()?.system.clone()
    }

    /// The file with Ollama's chat template where it has none of its own and that can be understood; else a note says why not.
    pub fn fit(&self, file: ModelFile, name: &str) -> Result<ModelFile, Error> {
        let own = file.file().get_opt::<&str>("tokenizer.chat_template").is_ok_and(|template| template.is_some());
        let template = self.entry.as_ref().and_then(|entry| entry.template.as_deref());
        match template.filter(|_| !own).map(jinja) {
            None => Ok(file),
            Some(Ok(source)) => Ok(file.with_template(&source)),
            Some(Err(reason)) => {
                note(&format!("{name}: Ollama's chat template is ignored, and the usual one for its tokens used: {reason}"));
                Ok(file)
            }
        }
    }
}
