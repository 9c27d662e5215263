//! Functions that block, for native hosts: each is one call of `block_on` over an `async` function.
//! The two have one name but for the ending `_async`, except that
//! [`Trainer::save_checkpoint`] writes the bytes of [`Trainer::checkpoint_async`] to a file.

use crate::{
    Document, Error, Facts, GradientOptions, Gradients, Loss, Method, Parameter, Step, Trained, Trainer, TrainerOptions,
};
use kernels::{Watch, block_on};
use model::{FactorPair, Model};
use std::io;
use std::path::Path;

impl Gradients {
    /// As [`Gradients::new_async`].
    ///
    /// # Errors
    /// As [`Gradients::new_async`].
    pub fn new(model: &Model, trained: &Trained, options: &GradientOptions) -> Result<Self, Error> {
        block_on(Self::new_async(model, trained, options))
    }

    /// As [`Gradients::compute_async`].
    ///
    /// # Errors
    /// As [`Gradients::compute_async`].
    pub fn compute(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Loss, Error> {
        block_on(self.compute_async(documents, watch))
    }

    /// As [`Gradients::gradients_async`].
    ///
    /// # Errors
    /// As [`Gradients::gradients_async`].
    pub fn gradients(&self) -> Result<Vec<Parameter>, Error> {
        block_on(self.gradients_async())
    }
}

impl Trainer {
    /// As [`Trainer::new_async`].
    ///
    /// # Errors
    /// As [`Trainer::new_async`].
    pub fn new(model: &Model, method: impl Into<Method>, options: &TrainerOptions) -> Result<Self, Error> {
        block_on(Self::new_async(model, method, options))
    }

    /// As [`Trainer::step_async`].
    ///
    /// # Errors
    /// As [`Trainer::step_async`].
    pub fn step(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Step, Error> {
        block_on(self.step_async(documents, watch))
    }

    /// As [`Trainer::evaluate_async`].
    ///
    /// # Errors
    /// As [`Trainer::evaluate_async`].
    pub fn evaluate(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Loss, Error> {
        block_on(self.evaluate_async(documents, watch))
    }

    /// As [`Trainer::profile_async`].
    ///
    /// # Errors
    /// As [`Trainer::profile_async`].
    pub fn profile(&mut self, documents: &[Document]) -> Result<kernels::Profile, Error> {
        block_on(self.profile_async(documents))
    }

    /// As [`Trainer::parameters_async`].
    ///
    /// # Errors
    /// As [`Trainer::parameters_async`].
    pub fn parameters(&self) -> Result<Vec<Parameter>, Error> {
        block_on(self.parameters_async())
    }

    /// As [`Trainer::gradients_async`].
    ///
    /// # Errors
    /// As [`Trainer::gradients_async`].
    pub fn gradients(&self) -> Result<Vec<Parameter>, Error> {
        block_on(self.gradients_async())
    }

    /// As [`Trainer::factors_async`].
    ///
    /// # Errors
    /// As [`Trainer::factors_async`].
    pub fn factors(&self) -> Result<Vec<FactorPair>, Error> {
        block_on(self.factors_async())
    }

    /// Writes a checkpoint, whole or not at all; see [`Trainer::checkpoint_async`].
    ///
    /// # Errors
    /// Errors of the device and of the file.
    pub fn save_checkpoint(&self, path: &Path, facts: &Facts, position: &str) -> Result<(), Error> {
        // The error of a device, which the writer of files does not know.
        let mut failed = None;
        let written = gguf::atomic_write(path, |out| {
            let each = |bytes: &[u8]| out.write_all(bytes).map_err(|error| Error::File(gguf::Error::Write { error }));
            match block_on(self.checkpoint_async(facts, position, each)) {
                Err(Error::File(gguf::Error::Write { error })) => Err(error),
                Err(error) => {
                    failed = Some(error);
                    Err(io::Error::other("the device failed"))
                }
                Ok(()) => Ok(()),
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(written?),
        }
    }
}
