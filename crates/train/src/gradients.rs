//! Gradients of a loss by the trained parameters of a model.

use crate::batch::{Document, Packed, pack};
use crate::error::Error;
use crate::memory::Memory;
use crate::options::{Capture, Checkpointing, GradientOptions};
use crate::parameters::{Parameter, Parameters, Trained, Use};
use crate::recorded::{Asked, Recorded, Subject};
use kernels::ops::Op;
use kernels::{Counts, Node, NotFinite, Plan, Profile, States, Watch, Work};
use model::{Checked, Model};

/// The loss of a batch.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// The mean that [`GradientOptions::normalize`] says, over the targets of the batch, in nats.
    pub loss: f64,
    /// Number of targets with a loss.
    pub targets: u64,
    /// What the sum of the losses was divided by: the sum of the weights of all targets, or the
    /// number of examples with a target. Means of batches, each times its `weight`, add up to the
    /// mean of all.
    pub weight: f64,
    /// The loss of every target, in the order of the documents.
    pub each: Vec<f32>,
    /// The captures that were asked for, in their order and by layers.
    pub captures: Vec<CapturedRows>,
    /// What was traced, by layers, if that was asked for.
    pub traced: Vec<Traced>,
}

/// A named value of a layer, or the derivative by it, in few numbers: over all rows of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    pub capture: Capture,
    pub layer: u32,
    /// The root of the sum of the squares of all finite elements.
    pub norm: f64,
    /// The largest magnitude of a finite element.
    pub largest: f32,
    /// Number of elements that are not finite.
    pub not_finite: u64,
}

/// The rows of a captured value or gradient, of all documents one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedRows {
    pub capture: Capture,
    pub layer: u32,
    /// Elements of a row.
    pub width: u32,
    /// [rows, width], f32.
    pub values: Vec<f32>,
}

/// Computes gradients by the trained parameters of a model, on the model's executor.
pub struct Gradients {
    plan: Plan,
    pub(crate) states: States,
    pub(crate) parameters: Parameters,
    vocabulary: u32,
    options: GradientOptions,
    captures: Vec<(Capture, u32)>,
    traced: Vec<(Capture, u32)>,
    checkpointing: Checkpointing,
    memory: Memory,
    /// The operations of a step.
    nodes: Vec<Node<Op>>,
}

/// Gives the two words that decide about dropout in the n-th step of a batch.
pub(crate) type Keys<'a> = &'a (dyn Fn(u32) -> [u32; 2] + Sync);

impl Gradients {
    /// Plans the gradients of `model` by what is `trained`.
    ///
    /// # Errors
    /// [`Error::NoTarget`], [`Error::Factors`] and [`Error::NotTrained`] for parameters that do not
    /// fit, [`Error::NotDifferentiable`] for the model, [`Error::Capture`] for a name that the
    /// model does not have, [`Error::TooLarge`] before anything is allocated, and errors of the
    /// device.
    pub async fn new_async(model: &Model, trained: &Trained, options: &GradientOptions) -> Result<Self, Error> {
        Self::made(model, trained, options, Use::default()).await
    }

    /// Plans the gradients of `model`. `of` says what a trainer needs of the parameters.
    pub(crate) async fn made(
        model: &Model,
        trained: &Trained,
        options: &GradientOptions,
        of: Use,
    ) -> Result<Self, Error> {
        let free = options.memory_bytes.or_else(|| model.available_bytes());
        let recorded = Recorded::new(&Subject::from(model), &Asked { trained, options, parameters: of, free })?;
        let Recorded { rec, parameters, captures, traced, checkpointing, memory } = recorded;
        let (executor, nodes) = (model.executor(), rec.nodes().to_vec());
        let mut states = States::new_async(executor, parameters.kinds(), 1, 1).await?;
        parameters.write(&mut states, trained, model)?;
        let (vocabulary, options) = (model.summary().vocabulary, options.clone());
        let plan = executor.plan_async(rec, model.weights(), &options.plan()).await?;
        Ok(Self { plan, states, parameters, vocabulary, options, captures, traced, checkpointing, memory, nodes })
    }

    /// The memory that gradients of a checked file need, before its weights are loaded.
    ///
    /// # Errors
    /// As [`Gradients::new_async`], except for errors of allocation.
    pub fn memory_of(file: &Checked, trained: &Trained, options: &GradientOptions) -> Result<Memory, Error> {
        Self::memory_for(file, trained, options, Use::default())
    }

    /// The memory that gradients of a checked file need. `of` says what a trainer needs of the
    /// parameters.
    pub(crate) fn memory_for(
        file: &Checked,
        trained: &Trained,
        options: &GradientOptions,
        of: Use,
    ) -> Result<Memory, Error> {
        let available = options.memory_bytes.or_else(|| file.available_bytes());
        // These weights are not loaded yet.
        let free = available.map(|bytes| bytes.saturating_sub(file.weights().bytes()));
        Ok(Recorded::new(&Subject::from(file), &Asked { trained, options, parameters: of, free })?.memory)
    }

    /// The memory that was estimated before anything was allocated.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// The work of a step of so many rows and targets, forward and backward. The bytes of a weight
    /// count in every operation that reads it.
    #[must_use]
    pub fn work(&self, rows: u32, targets: u32) -> Work {
        Work::of(&self.nodes, Counts { step: rows, out: targets })
    }

    /// How values are kept: what [`Checkpointing::Auto`] chose.
    #[must_use]
    pub fn checkpointing(&self) -> Checkpointing {
        self.checkpointing
    }

    /// The loss of a batch. Its gradients replace those of the batch before.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Id`] and [`Error::Lengths`] for documents, and errors of the
    /// device. After `kernels::Error::Cancelled` the same call gives the same bits as if nothing
    /// had been cancelled.
    pub async fn compute_async(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Loss, Error> {
        self.compute_with(documents, &|_| [0; 2], watch).await
    }

    /// The loss of a batch, with dropout if the parameters have it.
    pub(crate) async fn compute_with(
        &mut self,
        documents: &[Document],
        keys: Keys<'_>,
        watch: Watch<'_>,
    ) -> Result<Loss, Error> {
        let packed = self.packed(documents, keys)?;
        self.parameters.clear(&mut self.states);
        let mut sum = Loss { targets: packed.targets, weight: packed.weight, ..Loss::default() };
        sum.captures = self.captures.iter().map(|(capture, layer)| CapturedRows::of(capture, *layer)).collect();
        sum.traced = self.traced.iter().map(|(capture, layer)| Traced::of(capture, *layer)).collect();
        for step in &packed.steps {
            let outputs = self.plan.run_async(&mut self.states, step, watch).await?.wait_async().await?;
            sum.add(outputs.f32(0), &step.loss_weights);
            for (n, captured) in sum.captures.iter_mut().enumerate() {
                let values = outputs.f32(n + 1);
                captured.width = (values.len() / step.ids.len()) as u32;
                captured.values.extend(values);
            }
            for (n, traced) in sum.traced.iter_mut().enumerate() {
                traced.add(outputs.f32(1 + self.captures.len() + n));
            }
        }
        Ok(sum)
    }

    /// The inputs of the steps for a batch.
    pub(crate) fn packed(&self, documents: &[Document], keys: Keys<'_>) -> Result<Packed, Error> {
        let mut packed = pack(documents, self.vocabulary, &self.options)?;
        for (n, step) in (0..).zip(&mut packed.steps) {
            step.host = self.parameters.host_inputs(keys(n));
        }
        Ok(packed)
    }

    /// Times the dispatches of the first step of a batch; needs a GPU with timestamps. The
    /// gradients are those of that step afterwards.
    ///
    /// # Errors
    /// As [`Gradients::compute_async`], and `kernels::Error::NoTimestamps`.
    pub async fn profile_async(&mut self, documents: &[Document]) -> Result<Profile, Error> {
        let packed = self.packed(documents, &|_| [0; 2])?;
        self.parameters.clear(&mut self.states);
        let mut profile = Profile::default();
        if let Some(step) = packed.steps.first() {
            profile = self.plan.profile_async(&mut self.states, step).await?;
        }
        Ok(profile)
    }

    /// The first operation of a batch that makes a value that is no finite number.
    pub(crate) async fn first_not_finite(
        &mut self,
        documents: &[Document],
        keys: Keys<'_>,
    ) -> Result<Option<NotFinite>, Error> {
        for step in &self.packed(documents, keys)?.steps {
            let found = self.plan.first_not_finite_async(&mut self.states, step).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The gradients of the last batch, in the order of the trained parameters.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gradients_async(&self) -> Result<Vec<Parameter>, Error> {
        self.parameters.gradients(&self.states).await
    }

    /// Fills every intermediate with this word, for tests.
    #[doc(hidden)]
    pub fn poison(&mut self, word: u32) {
        self.plan.poison(word);
    }
}

impl CapturedRows {
    fn of(capture: &Capture, layer: u32) -> Self {
        Self { capture: capture.clone(), layer, width: 0, values: vec![] }
    }
}

impl Traced {
    fn of(capture: &Capture, layer: u32) -> Self {
        Self { capture: capture.clone(), layer, norm: 0.0, largest: 0.0, not_finite: 0 }
    }

    /// Adds the elements of a step.
    fn add(&mut self, values: &[f32]) {
        let finite = || values.iter().filter(|v| v.is_finite());
        let square = finite().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        self.norm = (self.norm.powi(2) + square).sqrt();
        self.largest = finite().fold(self.largest, |most, v| most.max(v.abs()));
        self.not_finite += (values.len() - finite().count()) as u64;
    }
}

impl Loss {
    /// Adds the losses of a step: pairs of a loss and a logarithm of a sum, with their shares.
    pub(crate) fn add(&mut self, rows: &[f32], shares: &[f32]) {
        let each = rows.chunks_exact(2).map(|row| row[0]);
        self.loss += each.clone().zip(shares).map(|(loss, &share)| f64::from(loss) * f64::from(share)).sum::<f64>();
        self.each.extend(each);
    }

    /// The rows of a capture in a layer.
    #[must_use]
    pub fn captured(&self, capture: &Capture, layer: u32) -> Option<&CapturedRows> {
        self.captures.iter().find(|rows| rows.capture == *capture && rows.layer == layer)
    }
}
