//! Functions that block, for native hosts: each is one call of `block_on` over an `async` function.
//! The two have one name but for the ending `_async`.

use crate::{
    Document, Error, Facts, Fallback, GradientOptions, Gradients, Loss, Method, Parameter, Step, Trained, Trainer,
    TrainerOptions,
};
use gguf::{Directory, GgmlType};
use kernels::{Watch, block_on};
use model::{FactorPair, Model};
use std::io::Write;

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

    /// As [`Trainer::write_peft_async`].
    ///
    /// # Errors
    /// As [`Trainer::write_peft_async`].
    pub fn write_peft(&self, into: &dyn Directory) -> Result<(), Error> {
        block_on(self.write_peft_async(into))
    }

    /// As [`Trainer::write_gguf_async`].
    ///
    /// # Errors
    /// As [`Trainer::write_gguf_async`].
    pub fn write_gguf(&self, out: impl Write) -> Result<(), Error> {
        block_on(self.write_gguf_async(out))
    }

    /// As [`Trainer::write_model_async`].
    ///
    /// # Errors
    /// As [`Trainer::write_model_async`].
    pub fn write_model(&self, out: impl Write, ty: GgmlType) -> Result<Vec<Fallback>, Error> {
        block_on(self.write_model_async(out, ty))
    }

    /// As [`Trainer::write_checkpoint_async`].
    ///
    /// # Errors
    /// As [`Trainer::write_checkpoint_async`].
    pub fn write_checkpoint(&self, out: impl Write, facts: &Facts, position: &str) -> Result<(), Error> {
        block_on(self.write_checkpoint_async(out, facts, position))
    }
}
