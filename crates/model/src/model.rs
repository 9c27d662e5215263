//! A model: an opened file, then the same with its weights on an executor.

use crate::adapter::{self, Adapted, Adapter, AdapterFile};
use crate::arch::{self, Architecture, Logits, Summary};
use crate::batch::Batch;
use crate::chat::ChatTemplate;
use crate::chunk;
use crate::error::Error;
use crate::load::{Loader, Progress};
use crate::needs::{self, Needs};
use crate::runner::{recording, sampling_keys};
use crate::session::{Session, SessionOptions};
use crate::tokenizer::Tokenizer;
use cpu_ref::KvType;
use gguf::Gguf;
use kernels::{Counts, Executor, Preparing, Recorder, StateKind, Tensor, Weights};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// An opened and checked file: hyper-parameters, tokenizer and template, no weights yet.
pub struct ModelFile {
    file: Arc<Gguf>,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
}

/// A model whose weights are loaded: a handle that is cheap to clone. Sessions keep one, so the weights
/// are freed with the last of them.
#[derive(Clone)]
pub struct Model(Arc<Loaded>);

/// What the handles of a model share.
struct Loaded {
    file: Arc<Gguf>,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    executor: Executor,
    architecture: Box<dyn Architecture>,
    weights: Arc<Weights>,
    digest: OnceLock<[u8; 32]>,
}

impl ModelFile {
    /// Takes an open GGUF file whose tokenizer it reads. The template is compiled when something is to be rendered.
    ///
    /// # Errors
    /// Unknown architectures and broken tokenizers.
    pub fn new(file: Gguf) -> Result<Self, Error> {
        arch::find(&file)?;
        let tokenizer = Arc::new(Tokenizer::from_gguf(&file)?);
        let template = ChatTemplate::from_gguf(&file, &tokenizer);
        Ok(Self { file: Arc::new(file), tokenizer, template })
    }

    /// The file behind it.
    #[must_use]
    pub fn file(&self) -> &Gguf {
        &self.file
    }

    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    #[must_use]
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The same with another chat template in Jinja, for files that bring none.
    #[must_use]
    pub fn with_template(self, source: &str) -> Self {
        let template = ChatTemplate::new(source, &self.tokenizer);
        Self { template, ..self }
    }

    /// Checks every tensor that the architecture needs and tells the sizes, loading nothing.
    ///
    /// # Errors
    /// Hyper-parameters out of range; tensors missing, of another shape or of a type that no kernel reads.
    pub fn check(&self, executor: &Executor) -> Result<Checked, Error> {
        let (architecture, weights) = self.load(Weights::dry(executor), &|_, _| {})?;
        let summary = architecture.summary().clone();
        if self.tokenizer.vocab_size() != summary.vocabulary as usize {
            return Err(Error::Vocabulary { tokens: self.tokenizer.vocab_size(), rows: summary.vocabulary });
        }
        Ok(Checked { adapted: Adapted::none(&Arc::new(weights)), architecture, executor: executor.clone() })
    }

    fn load(&self, weights: Weights, progress: Progress<'_>) -> Result<(Box<dyn Architecture>, Weights), Error> {
        let (name, load) = arch::find(&self.file)?;
        let mut loader = Loader { file: &self.file, architecture: name, weights, progress, done: 0 };
        let architecture = load(&self.file, &mut loader)?;
        Ok((architecture, loader.weights))
    }

    /// Loads the weights onto an executor, reporting bytes done and in all.
    ///
    /// # Errors
    /// As [`ModelFile::check`]; [`Error::TooLarge`] when the weights alone do not fit; what allocation and reading give. Nothing
    /// stays allocated then.
    pub fn on_with(self, executor: Executor, progress: Progress<'_>) -> Result<Model, Error> {
        let checked = self.check(&executor)?;
        if let Some(available) = needs::available(&executor).filter(|&free| free < checked.adapted.weights.bytes()) {
            checked.fit_within(&SessionOptions::default(), available)?;
        }
        let (architecture, weights) = self.load(Weights::new(&executor), progress)?;
        let weights = weights.loaded();
        let Self { file, tokenizer, template } = self;
        let (weights, digest) = (Arc::new(weights), OnceLock::new());
        Ok(Model(Arc::new(Loaded { file, tokenizer, template, executor, architecture, weights, digest })))
    }

    /// Loads the weights onto an executor.
    ///
    /// # Errors
    /// As [`ModelFile::on_with`].
    pub fn on(self, executor: impl Into<Executor>) -> Result<Model, Error> {
        self.on_with(executor.into(), &|_, _| {})
    }
}

/// A file whose tensors were checked for an executor, and what it would take there.
pub struct Checked {
    architecture: Box<dyn Architecture>,
    executor: Executor,
    /// Dry.
    adapted: Adapted,
}

impl Checked {
    #[must_use]
    pub fn summary(&self) -> &Summary {
        self.architecture.summary()
    }

    /// Holds an adapter against the model and counts it, and what its products take, among the needs; nothing is loaded.
    ///
    /// # Errors
    /// [`Error::Adapter`]: one for another architecture, over tensors that this model lacks, of other shapes.
    pub fn adapt(&mut self, file: &AdapterFile, scale: f32) -> Result<(), Error> {
        let factors = file.load(&self.adapted.weights, self.summary().architecture, Weights::dry(&self.executor))?;
        Ok(self.adapted.add(&factors, scale)?)
    }

    /// The options that a session made with these has: where [`SessionOptions::chunk`] is 0, 512 rows, and on a discrete GPU 2048 or
    /// 1024 if their intermediates are small beside the weights and everything fits the memory.
    ///
    /// # Errors
    /// A context that the model was not made for.
    pub fn settled(&self, options: &SessionOptions) -> Result<SessionOptions, Error> {
        chunk::settled(&*self.architecture, &self.adapted, &self.executor, options, 0)
    }

    /// Sizes for a session with these options.
    ///
    /// # Errors
    /// A context that the model was not made for, limits of the device.
    pub fn needs(&self, options: &SessionOptions) -> Result<Needs, Error> {
        Needs::of(&*self.architecture, &self.adapted, &self.executor, &self.settled(options)?)
    }

    /// The same, refused where they are more than the options allow or than the executor has free.
    ///
    /// # Errors
    /// As [`Checked::needs`]; [`Error::TooLarge`].
    pub fn fit(&self, options: &SessionOptions) -> Result<Needs, Error> {
        match options.memory_bytes.or_else(|| needs::available(&self.executor)) {
            Some(available) => self.fit_within(options, available),
            None => self.needs(options),
        }
    }

    /// Begins to build what a session with these options runs when it generates, the reading of a prompt first: meant for the time
    /// in which the weights load. What is not done when a session needs it is built then.
    ///
    /// # Errors
    /// As [`Checked::needs`].
    pub fn prepare(&self, options: &SessionOptions) -> Result<Preparing, Error> {
        let options = &self.settled(options)?;
        let kinds = arch::states(self.summary(), options);
        let keys = sampling_keys(options).into_iter().rev();
        let recordings: Vec<_> = keys.map(|key| recording(&*self.architecture, &self.adapted, &kinds, key)).collect();
        Ok(self.executor.prepare(&recordings, &options.planning())?)
    }

    /// Bytes that the executor has free, where that can be known.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        needs::available(&self.executor)
    }

    fn fit_within(&self, options: &SessionOptions, available: u64) -> Result<Needs, Error> {
        let needs = self.needs(options)?;
        needs.fit(&self.executor, options.context_for(self.summary())?, available)?;
        Ok(needs)
    }

    /// The recording of a decode step, for people who want to see the plan.
    #[must_use]
    pub fn recording(&self, options: &SessionOptions, rows: u32) -> Recorder {
        // A context that cannot be is refused elsewhere.
        let kinds = arch::states(self.summary(), &self.settled(options).unwrap_or_else(|_| options.clone()));
        record(&*self.architecture, &self.adapted, Recorder::new(Counts { step: rows, out: 1 }, &kinds), Logits::Rows, false).0
    }
}

/// Appends a step to an empty recording; returns that and the tensor of its logits.
pub(crate) fn record(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    mut rec: Recorder,
    logits: Logits,
    sample: bool,
) -> (Recorder, Tensor) {
    adapted.additions.iter().for_each(|(weight, with)| rec.adapt(*weight, *with));
    let kv = arch::kv_states(&rec, architecture.summary().caches.len());
    let logits = architecture.forward(&mut rec, &kv, logits);
    if !sample {
        rec.output(logits);
    }
    (rec, logits)
}

impl Model {
    /// Opens a file (following its splits), mapped where that is possible.
    ///
    /// # Errors
    /// As [`ModelFile::new`] and for files that cannot be read.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFile, Error> {
        ModelFile::new(Gguf::open(path)?)
    }

    /// A conversation of its own over these weights.
    ///
    /// # Errors
    /// [`Error::Context`] for one that the model was not made for, [`Error::TooLarge`] for one that does not fit.
    ///
    /// # Panics
    /// When the options ask for no sequences.
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        Session::new(self.clone(), options)
    }

    /// Loads an adapter beside the weights, for [`Session::set_adapters`] and [`Batch::set_adapters`].
    ///
    /// # Errors
    /// As [`Checked::adapt`], before anything is allocated; [`AdapterError::TooLarge`](crate::AdapterError::TooLarge); what
    /// allocation and reading give.
    pub fn adapter(&self, file: &AdapterFile) -> Result<Arc<Adapter>, Error> {
        let load = |into| file.load(&self.0.weights, self.summary().architecture, into);
        adapter::fit(load(Weights::dry(&self.0.executor))?.weights.bytes(), &self.0.executor)?;
        Ok(Arc::new(Adapter::new(file, load(Weights::new(&self.0.executor))?, &self.0.weights)?))
    }

    /// Several sequences that share their steps, as many as [`SessionOptions::sequences`] says.
    ///
    /// # Errors
    /// As [`Model::session`].
    ///
    /// # Panics
    /// As [`Model::session`].
    pub fn batch(&self, options: SessionOptions) -> Result<Batch, Error> {
        Batch::new(self.clone(), options)
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

    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// The states that [`Model::documents`] wants: of one sequence and one position, neither written nor read.
    #[must_use]
    pub fn document_states(&self) -> Vec<StateKind> {
        arch::states(self.summary(), &SessionOptions { kv: KvType::F32, ..SessionOptions::default() })
    }

    /// The recording of a step of whole documents, one behind the other, which leaves nothing behind, and the tensor of the logits of these rows: what
    /// training appends to. A step says the `positions`, `ids` and `firsts` of its rows, and its `ends` where the model looks ahead.
    #[must_use]
    pub fn documents(&self, capacity: Counts, rows: Logits) -> (Recorder, Tensor) {
        let rec = Recorder::of_documents(capacity, &self.document_states());
        record(&*self.0.architecture, &Adapted::none(&self.0.weights), rec, rows, true)
    }

    /// Bytes of weights on the executor.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.0.weights.bytes()
    }

    /// The digest of the weights, once it was asked for.
    pub(crate) fn kept_digest(&self) -> &OnceLock<[u8; 32]> {
        &self.0.digest
    }

    pub(crate) fn architecture(&self) -> &dyn Architecture {
        &*self.0.architecture
    }

    /// The weights, as recordings name them.
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        &self.0.weights
    }
}
