//! Trained factors, in the forms that PEFT and llama.cpp read.

pub(crate) mod ggml;
mod peft;

pub use ggml::write_gguf;
pub use peft::{PeftOptions, write_peft};

use crate::error::Error;
use crate::method::Method;
use crate::trainer::Trainer;
use gguf::Directory;
use model::FactorPair;
use std::io::Write;

impl Trainer {
    /// Writes the factors as a folder that PEFT loads ([`write_peft`], with
    /// [`Trainer::peft_options`]).
    ///
    /// # Errors
    /// [`Error::NoForm`] if the weights of the model are trained, and as [`write_peft`].
    pub async fn write_peft_async(&self, into: &dyn Directory) -> Result<(), Error> {
        write_peft(into, &self.factors_to_write().await?, &self.peft_options())
    }

    /// Writes the factors as a GGUF file of llama.cpp ([`write_gguf`]).
    ///
    /// # Errors
    /// [`Error::NoForm`] if the weights of the model are trained, and as [`write_gguf`].
    pub async fn write_gguf_async(&self, out: impl Write) -> Result<(), Error> {
        write_gguf(out, self.model.summary().architecture, &self.factors_to_write().await?)
    }

    /// What [`Trainer::write_peft_async`] states beside the factors.
    #[must_use]
    pub fn peft_options(&self) -> PeftOptions {
        let options = PeftOptions::of(&self.model);
        match &self.method {
            Method::Lora(lora) => options.rslora(lora.rslora).dropout(lora.dropout),
            Method::Full(_) => options,
        }
    }

    pub(crate) async fn factors_to_write(&self) -> Result<Vec<FactorPair>, Error> {
        match self.method {
            Method::Lora(_) => self.factors_async().await,
            Method::Full(_) => Err(Error::no_form("the weights of the model are trained, so there are no factors")),
        }
    }
}
