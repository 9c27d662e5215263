//! Functions that block, for native hosts: each is one call of `block_on` over the function of the
//! same name that ends in `_async`.

use crate::{Document, Error, GradientOptions, Gradients, Loss, Parameter, Trained};
use kernels::{Watch, block_on};
use model::Model;

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
