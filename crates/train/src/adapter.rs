//! Files of trained factors, in the forms that PEFT and llama.cpp read.

mod ggml;
mod peft;

pub use ggml::save_gguf;
pub use peft::{PeftOptions, save_peft};

use crate::error::Error;
use crate::method::Method;
use crate::trainer::Trainer;
use model::FactorPair;
use std::path::Path;

impl Trainer {
    /// Writes the factors as a folder that PEFT loads ([`save_peft`], with
    /// [`Trainer::peft_options`]).
    ///
    /// # Errors
    /// [`Error::Write`] if the weights of the model are trained, and as [`save_peft`].
    pub fn save_peft(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        save_peft(folder, &self.factors_for(folder)?, &self.peft_options())
    }

    /// Writes the factors as a GGUF file of llama.cpp ([`save_gguf`]).
    ///
    /// # Errors
    /// [`Error::Write`] if the weights of the model are trained, and as [`save_gguf`].
    pub fn save_gguf(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        save_gguf(path, self.model.summary().architecture, &self.factors_for(path)?)
    }

    /// What [`Trainer::save_peft`] states beside the factors.
    #[must_use]
    pub fn peft_options(&self) -> PeftOptions {
        let options = PeftOptions::of(&self.model);
        match &self.method {
            Method::Lora(lora) => options.rslora(lora.rslora).dropout(lora.dropout),
            Method::Full(_) => options,
        }
    }

    fn factors_for(&self, path: &Path) -> Result<Vec<FactorPair>, Error> {
        if matches!(self.method, Method::Full(_)) {
            let reason = "the weights of the model are trained, so there are no factors".to_string();
            return Err(Error::Write { file: path.display().to_string(), reason });
        }
        self.factors()
    }
}
