//! The functions that wait, as functions that block. Each is one call over its `async` form.

use crate::adapter::{Adapter, AdapterFile, Applied};
use crate::batch::{Batch, Drawn};
use crate::error::Error;
use crate::file::ModelFile;
use crate::generate::{Generate, Generated};
use crate::model::Model;
use crate::sampling::Sampling;
use crate::session::{Session, SessionOptions, Tapped};
use crate::walk::{Walk, WalkStep};
use gguf::Report;
use kernels::{Agreement, Executor, Mirror, Profile, block_on};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl ModelFile {
    /// Loads the weights onto an executor and reports the bytes of the tensors.
    ///
    /// # Errors
    /// As [`ModelFile::on_async`].
    pub fn on_with(self, executor: impl Into<Executor>, progress: Report<'_>) -> Result<Model, Error> {
        block_on(self.on_async(executor, progress))
    }

    /// Loads the weights onto an executor.
    ///
    /// # Errors
    /// As [`ModelFile::on_async`].
    pub fn on(self, executor: impl Into<Executor>) -> Result<Model, Error> {
        self.on_with(executor, &|_| {})
    }
}

impl Model {
    /// Starts a conversation. Sessions share the weights and are otherwise independent.
    ///
    /// # Errors
    /// As [`Model::session_async`].
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        block_on(self.session_async(options))
    }

    /// Makes a batch of [`SessionOptions::sequences`] sequences, which share every step.
    ///
    /// # Errors
    /// As [`Model::batch_async`].
    pub fn batch(&self, options: SessionOptions) -> Result<Batch, Error> {
        block_on(self.batch_async(options))
    }

    /// Loads an adapter beside the weights.
    ///
    /// # Errors
    /// As [`Model::adapter_async`].
    pub fn adapter(&self, file: &AdapterFile) -> Result<Arc<Adapter>, Error> {
        block_on(self.adapter_async(file))
    }
}

impl Session {
    /// As [`Session::prefill_async`].
    ///
    /// # Errors
    /// As [`Session::prefill_async`].
    pub fn prefill(&mut self, progress: Option<Report<'_>>) -> Result<(), Error> {
        block_on(self.prefill_async(progress))
    }

    /// As [`Session::logits_async`].
    ///
    /// # Errors
    /// As [`Session::logits_async`].
    pub fn logits(&mut self, each: impl FnMut(usize, &[f32], &[Tapped])) -> Result<(), Error> {
        block_on(self.logits_async(each))
    }

    /// As [`Session::profile_async`].
    ///
    /// # Errors
    /// As [`Session::profile_async`].
    pub fn profile(&mut self) -> Result<Profile, Error> {
        block_on(self.profile_async())
    }

    /// As [`Session::agree_async`].
    ///
    /// # Errors
    /// As [`Session::agree_async`].
    ///
    /// # Panics
    /// As [`Session::agree_async`].
    pub fn agree(&mut self, mirror: &mut Mirror, progress: Option<Report<'_>>) -> Result<Vec<Agreement>, Error> {
        block_on(self.agree_async(mirror, progress))
    }

    /// As [`Session::save_async`].
    ///
    /// # Errors
    /// As [`Session::save_async`].
    pub fn save(&self, out: &mut (impl Write + ?Sized)) -> Result<(), Error> {
        block_on(self.save_async(out))
    }

    /// As [`Session::load_async`].
    ///
    /// # Errors
    /// As [`Session::load_async`].
    pub fn load(&mut self, input: &mut (impl Read + ?Sized)) -> Result<(), Error> {
        block_on(self.load_async(input))
    }

    /// As [`Session::reopen_async`].
    ///
    /// # Errors
    /// As [`Session::reopen_async`].
    ///
    /// # Panics
    /// As [`Session::reopen_async`].
    pub fn reopen(&mut self, options: SessionOptions) -> Result<(), Error> {
        block_on(self.reopen_async(options))
    }

    /// As [`Session::move_to_async`].
    ///
    /// # Errors
    /// As [`Session::move_to_async`].
    pub fn move_to(&mut self, model: &Model, adapters: Vec<Applied>) -> Result<(), Error> {
        block_on(self.move_to_async(model, adapters))
    }

    /// As [`Session::fork_async`].
    ///
    /// # Errors
    /// As [`Session::fork_async`].
    pub fn fork(&self) -> Result<Self, Error> {
        block_on(self.fork_async())
    }
}

impl Iterator for Generate<'_> {
    type Item = Result<Generated, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        block_on(self.next_async())
    }
}

impl Walk {
    /// As [`Walk::run_async`].
    ///
    /// # Errors
    /// As [`Walk::run_async`].
    pub fn run(&mut self, step: &WalkStep, cancel: &AtomicBool) -> Result<Vec<Agreement>, Error> {
        block_on(self.run_async(step, cancel))
    }
}

impl Batch {
    /// As [`Batch::step_async`].
    ///
    /// # Errors
    /// As [`Batch::step_async`].
    ///
    /// # Panics
    /// As [`Batch::step_async`].
    pub fn step(&mut self, sampling: &[Sampling]) -> Result<Vec<Drawn>, Error> {
        block_on(self.step_async(sampling))
    }

    /// As [`Batch::move_to_async`].
    ///
    /// # Errors
    /// As [`Batch::move_to_async`].
    pub fn move_to(&mut self, model: &Model, adapters: Vec<Applied>) -> Result<(), Error> {
        block_on(self.move_to_async(model, adapters))
    }

    /// As [`Batch::agree_async`].
    ///
    /// # Errors
    /// As [`Batch::agree_async`].
    ///
    /// # Panics
    /// As [`Batch::agree_async`].
    pub fn agree(&mut self, mirror: &mut Mirror) -> Result<Vec<Agreement>, Error> {
        block_on(self.agree_async(mirror))
    }

    /// As [`Batch::profile_async`].
    ///
    /// # Errors
    /// As [`Batch::profile_async`].
    pub fn profile(&mut self) -> Result<Profile, Error> {
        block_on(self.profile_async())
    }
}
