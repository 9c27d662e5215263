//! A model: an opened file with its weights on an executor.

use crate::adapter::{self, Adapted, Adapter, AdapterFile, FactorPair};
use crate::arch::{self, Architecture, Logits, Summary};
use crate::base::Base;
use crate::chat::ChatTemplate;
use crate::chunk;
use crate::error::Error;
use crate::file::ModelFile;
use crate::load::Loader;
use crate::memory::available;
use crate::meta::Meta;
use crate::needs::Needs;
use crate::note::Note;
use crate::options::SessionOptions;
use crate::plans::sampling_keys;
use crate::recording::{record, recording};
use crate::tokenizer::Tokenizer;
use gguf::{AsyncSource, Gguf, Report};
use kernels::{Counts, Executor, Preparing, Recorder, StateKind, Tensor, Weights};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A model with its weights loaded: a handle that is cheap to clone. Every session keeps a handle,
/// and the weights are freed with the last handle.
#[derive(Clone)]
pub struct Model(Arc<Loaded>);

/// The data that all handles of a model share.
struct Loaded {
    file: Arc<Gguf>,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    notes: Vec<Note>,
    base: Base,
    executor: Executor,
    architecture: Box<dyn Architecture>,
    weights: Arc<Weights>,
    digest: OnceLock<[u8; 32]>,
}

impl ModelFile {
    /// Reads the tokenizer and the chat template of an open GGUF file.
    ///
    /// # Errors
    /// An architecture that this version does not run; a broken tokenizer. The template is compiled
    /// when something is to be rendered.
    pub fn new(file: Gguf) -> Result<Self, Error> {
        let (architecture, _) = arch::find(&file)?;
        let mut read = Self::read(file)?;
        // A number out of range is an error when the hyper-parameters are read.
        let note = Meta { file: &read.file, architecture }.context_note().unwrap_or_default();
        read.notes.extend(note);
        read.notes.shrink_to_fit();
        Ok(read)
    }

    /// Checks every tensor that the architecture needs and measures it. Loads nothing.
    ///
    /// # Errors
    /// A hyper-parameter that is out of range; a tensor that is missing, has another shape, or has
    /// a type that no kernel reads; [`Error::BaseType`] and [`Error::BaseRow`].
    pub fn check(&self, executor: &Executor) -> Result<Checked, Error> {
        let (name, load) = arch::find(&self.file)?;
        let mut loader =
            Loader { file: &self.file, architecture: name, base: self.base, weights: Weights::new(executor) };
        let architecture = load(&self.file, &mut loader)?;
        let weights = loader.weights;
        let summary = architecture.summary().clone();
        if self.tokenizer.vocab_size() != summary.vocabulary as usize {
            return Err(Error::Vocabulary { tokens: self.tokenizer.vocab_size(), rows: summary.vocabulary });
        }
        Ok(Checked { adapted: Adapted::none(&Arc::new(weights)), architecture, executor: executor.clone() })
    }

    /// Loads the weights onto an executor and reports the bytes of the tensors.
    ///
    /// # Errors
    /// As [`ModelFile::check`]; [`Error::TooLarge`] if the weights alone do not fit; errors of the
    /// allocation and of reading the file. Nothing stays allocated after an error.
    pub async fn on_async(self, executor: impl Into<Executor>, progress: Report<'_>) -> Result<Model, Error> {
        let checked = self.check(&executor.into())?;
        checked.fit_weights()?;
        let weights = Weights::clone(&checked.adapted.weights).load_async(progress).await?;
        Ok(self.loaded(checked, weights))
    }

    /// As [`ModelFile::on_async`], where the bytes of the tensors come from `source`, in the order
    /// of the file. `checked` is of this file.
    ///
    /// # Errors
    /// As [`ModelFile::on_async`].
    pub async fn receive(
        self,
        checked: Checked,
        source: &impl AsyncSource,
        progress: Report<'_>,
    ) -> Result<Model, Error> {
        checked.fit_weights()?;
        let weights = Weights::clone(&checked.adapted.weights).receive(source, progress).await?;
        Ok(self.loaded(checked, weights))
    }

    fn loaded(self, checked: Checked, weights: Weights) -> Model {
        let Checked { architecture, executor, .. } = checked;
        let Self { file, tokenizer, template, notes, base } = self;
        let (weights, digest) = (Arc::new(weights), OnceLock::new());
        Model(Arc::new(Loaded { file, tokenizer, template, notes, base, executor, architecture, weights, digest }))
    }
}

/// A file whose tensors were checked for an executor. It can tell how much memory the model needs.
pub struct Checked {
    architecture: Box<dyn Architecture>,
    executor: Executor,
    /// Weights that are listed but not loaded.
    adapted: Adapted,
}

impl Checked {
    #[must_use]
    pub fn summary(&self) -> &Summary {
        self.architecture.summary()
    }

    /// Checks that an adapter fits the model, and adds the adapter and the intermediates of its
    /// products to the needs. Loads nothing. Returns a note if the model has no use for some
    /// factors: factors of towers and projectors, and of keys and values in layers that take them
    /// from an earlier layer.
    ///
    /// # Errors
    /// [`Error::Adapter`] if the adapter is for another architecture, names tensors that this model
    /// does not have, or has other shapes, and if no factor applies.
    pub fn adapt(&mut self, file: &AdapterFile, scale: f32) -> Result<Option<Note>, Error> {
        let factors = file.load(&self.adapted.weights, self.summary(), Weights::new(&self.executor))?;
        self.adapted.add(&factors, scale)?;
        Ok(factors.note())
    }

    /// As [`Model::factors_of`], before the weights are loaded.
    ///
    /// # Errors
    /// As [`Checked::adapt`], and a file that cannot be read.
    pub fn factors_of(&self, file: &AdapterFile) -> Result<(Vec<FactorPair>, Option<Note>), Error> {
        let (factors, left_out) = file.factors_of(&self.adapted.weights, self.summary())?;
        Ok((factors, Note::of_factors(&left_out)))
    }

    /// The options that a session gets from these: a [`SessionOptions::chunk`] of 0 is replaced.
    ///
    /// The chunk is then 512 rows. On a discrete GPU it is 2048 or 1024 rows, if the intermediates
    /// are small compared with the weights and everything fits into memory.
    ///
    /// # Errors
    /// A context length that the model does not support.
    pub fn settled(&self, options: &SessionOptions) -> Result<SessionOptions, Error> {
        chunk::settled(&*self.architecture, &self.adapted, &self.executor, options, 0)
    }

    /// The memory that a session with these options needs.
    ///
    /// # Errors
    /// A context length that the model does not support; a limit of the device.
    pub fn needs(&self, options: &SessionOptions) -> Result<Needs, Error> {
        Needs::of(&*self.architecture, &self.adapted, &self.executor, &self.settled(options)?)
    }

    /// An error if the weights alone are more than the executor has free.
    fn fit_weights(&self) -> Result<(), Error> {
        match available(&self.executor).filter(|&free| free < self.adapted.weights.bytes()) {
            Some(available) => self.fit_within(&SessionOptions::default(), available).map(|_| ()),
            None => Ok(()),
        }
    }

    /// As [`Checked::needs`], and an error if this is more than the options allow, or more than the
    /// executor has free.
    ///
    /// # Errors
    /// As [`Checked::needs`]; [`Error::TooLarge`].
    pub fn fit(&self, options: &SessionOptions) -> Result<Needs, Error> {
        match options.memory_bytes.or_else(|| available(&self.executor)) {
            Some(available) => self.fit_within(options, available),
            None => self.needs(options),
        }
    }

    /// Starts to build the kernels that a session with these options generates with, those of the
    /// prompt first. Call it before the weights load, so that both happen at the same time. If a
    /// kernel is not ready when a session needs it, the session builds it.
    ///
    /// # Errors
    /// As [`Checked::needs`].
    pub fn prepare(&self, options: &SessionOptions) -> Result<Preparing, Error> {
        let options = &self.settled(options)?;
        let kinds = arch::states(self.summary(), options);
        let keys = sampling_keys(&self.executor, options).into_iter().rev();
        let recordings: Vec<_> = keys.map(|key| recording(&*self.architecture, &self.adapted, &kinds, key)).collect();
        Ok(self.executor.prepare(&recordings, &options.planning())?)
    }

    /// Bytes that the executor has free, if known.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        available(&self.executor)
    }

    fn fit_within(&self, options: &SessionOptions, available: u64) -> Result<Needs, Error> {
        let needs = self.needs(options)?;
        needs.fit(&self.executor, options.context_for(self.summary())?, available)?;
        Ok(needs)
    }

    /// As [`Model::document_states`].
    #[must_use]
    pub fn document_states(&self) -> Vec<StateKind> {
        arch::document_states(self.summary())
    }

    /// As [`Model::documents_in`], before the weights are loaded: to plan what will run.
    #[must_use]
    pub fn documents_in(&self, rec: Recorder, rows: Logits) -> (Recorder, Tensor) {
        record(&*self.architecture, &self.adapted, rec, rows, true)
    }

    /// The weights, listed and not loaded, with the handles that recordings use.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.adapted.weights
    }

    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The recording of a step of `rows` rows with the logits of one row, to show its plan.
    #[must_use]
    pub fn recording(&self, options: &SessionOptions, rows: u32) -> Recorder {
        // An unsupported context length is an error of `needs` and `fit`, not of this function.
        let kinds = arch::states(self.summary(), &self.settled(options).unwrap_or_else(|_| options.clone()));
        record(
            &*self.architecture,
            &self.adapted,
            Recorder::new(Counts { step: rows, out: 1 }, &kinds),
            Logits::Rows,
            false,
        )
        .0
    }
}

impl Model {
    /// Opens a model file; see [`ModelFile::open`].
    ///
    /// # Errors
    /// As [`ModelFile::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFile, Error> {
        ModelFile::open(path)
    }

    /// The opened file of this model, with tokenizer and template, to load its weights again: onto
    /// another executor, or onto a device that was opened again. The file is not read again.
    #[must_use]
    pub fn to_file(&self) -> ModelFile {
        let Loaded { file, tokenizer, template, notes, base, .. } = &*self.0;
        let (file, tokenizer) = (Arc::clone(file), Arc::clone(tokenizer));
        ModelFile { file, tokenizer, template: template.clone(), notes: notes.clone(), base: *base }
    }

    /// Loads an adapter beside the weights, for
    /// [`Session::set_adapters`](crate::Session::set_adapters) and
    /// [`Batch::set_adapters`](crate::Batch::set_adapters).
    ///
    /// # Errors
    /// As [`Checked::adapt`], before anything is allocated;
    /// [`AdapterError::TooLarge`](crate::AdapterError::TooLarge); errors of the allocation and of
    /// reading the file.
    pub async fn adapter_async(&self, file: &AdapterFile) -> Result<Arc<Adapter>, Error> {
        let mut factors = file.load(&self.0.weights, self.summary(), Weights::new(&self.0.executor))?;
        adapter::fit(factors.weights.bytes(), &self.0.executor)?;
        factors.weights = factors.weights.load_async(&|_| {}).await?;
        Ok(Arc::new(Adapter::new(file.path(), file.digest()?, factors, &self.0.weights)))
    }

    /// The factors of an adapter that change this model, in f32, and a note if the model has no use
    /// for some of the factors: to train them further, or to write them.
    ///
    /// # Errors
    /// As [`Checked::adapt`], and a file that cannot be read.
    pub fn factors_of(&self, file: &AdapterFile) -> Result<(Vec<FactorPair>, Option<Note>), Error> {
        let (factors, left_out) = file.factors_of(&self.0.weights, self.summary())?;
        Ok((factors, Note::of_factors(&left_out)))
    }

    #[must_use]
    pub fn summary(&self) -> &Summary {
        self.0.architecture.summary()
    }

    #[must_use]
    pub fn file(&self) -> &Gguf {
        &self.0.file
    }

    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.0.tokenizer
    }

    #[must_use]
    pub fn template(&self) -> &ChatTemplate {
        &self.0.template
    }

    /// The assumptions that were made to load the file.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.0.notes
    }

    /// The types that the weights of the linear layers have.
    #[must_use]
    pub fn base(&self) -> Base {
        self.0.base
    }

    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// The kinds of states to run [`Model::documents`] with. One sequence and one position suffice,
    /// because the step neither writes nor reads them.
    #[must_use]
    pub fn document_states(&self) -> Vec<StateKind> {
        arch::document_states(self.summary())
    }

    /// The recording of a step over whole documents, one after the other, and the tensor of the
    /// logits of `rows`. The step writes no states. Training appends its operations to it.
    ///
    /// The input of a step gives the `positions`, `ids` and `firsts` of its rows, and the `ends` if
    /// the model looks ahead.
    #[must_use]
    pub fn documents(&self, capacity: Counts, rows: Logits) -> (Recorder, Tensor) {
        self.documents_in(Recorder::of_documents(capacity, &self.document_states()), rows)
    }

    /// The recording that [`Model::documents`] gives, in a recorder of documents that has low-rank
    /// additions ([`Recorder::adapt`]) or more states. The states of the recorder begin with
    /// [`Model::document_states`].
    #[must_use]
    pub fn documents_in(&self, rec: Recorder, rows: Logits) -> (Recorder, Tensor) {
        record(&*self.0.architecture, &Adapted::none(&self.0.weights), rec, rows, true)
    }

    /// Bytes that the executor has free, if known.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        available(&self.0.executor)
    }

    /// Bytes of the weights on the executor.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.0.weights.bytes()
    }

    /// The digest of the weights. It is empty until it is first needed.
    pub(crate) fn kept_digest(&self) -> &OnceLock<[u8; 32]> {
        &self.0.digest
    }

    pub(crate) fn architecture(&self) -> &dyn Architecture {
        &*self.0.architecture
    }

    /// The weights, with the handles that recordings use.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.0.weights
    }
}
