//! Trains low-rank factors or all weights of a model, batch by batch.

use crate::batch::Document;
use crate::checkpoint::BaseDigest;
use crate::error::Error;
use crate::gradients::{Gradients, Loss};
use crate::memory::Memory;
use crate::method::Method;
use crate::optimizer::Optimizer;
use crate::options::{Checkpointing, TrainerOptions};
use crate::parameters::{Parameter, Trained, Use};
use crate::random;
use crate::recorded::{Subject, losses};
use crate::tally::Tally;
use kernels::{Plan, Watch};
use model::{Checked, EMBEDDING, FactorPair, Model, transpose};

/// Steps in a row without a change after which a trainer gives up.
pub const SKIPS: u32 = 10;

/// A step of training.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the step; the first one is 1.
    pub number: u64,
    /// The loss of the batch before the step, in nats.
    pub loss: Loss,
    /// The norm of all gradients together, before clipping.
    pub norm: f64,
    /// The learning rate.
    pub rate: f64,
    /// If the loss or the norm was no finite number: where that began. The step changed nothing.
    pub skipped: Option<String>,
}

/// Trains a model with AdamW, on the model's executor. The weights of the model are shared with its
/// sessions.
pub struct Trainer {
    pub(crate) model: Model,
    pub(crate) method: Method,
    pub(crate) options: TrainerOptions,
    pub(crate) gradients: Gradients,
    optimizer: Optimizer,
    /// Made when it is first needed.
    evaluation: Option<Plan>,
    pub(crate) trained: Trained,
    pub(crate) tally: Tally,
    /// The digest of the model's file, for checkpoints.
    pub(crate) digest: BaseDigest,
}

impl Method {
    /// What its parameters are held for.
    fn parameters(&self, options: &TrainerOptions) -> Use {
        Use { moments: true, dropout: self.dropout(), validation: options.validation }
    }
}

impl Trainer {
    /// Plans the training of `model`.
    ///
    /// # Errors
    /// As [`Gradients::new_async`].
    pub async fn new_async(model: &Model, method: impl Into<Method>, options: &TrainerOptions) -> Result<Self, Error> {
        let (method, options) = (method.into(), options.clone());
        let mut trained = method.trained(model.weights())?;
        let gradients = Gradients::made(model, &trained, &options.gradients, method.parameters(&options)).await?;
        let optimizer = Optimizer::new(model, &gradients.parameters, &options).await?;
        if let Trained::Factors(factors) = &mut trained {
            // The states hold the values.
            factors.iter_mut().for_each(|pair| (pair.a, pair.b) = (vec![], vec![]));
        }
        let (model, tally, digest) = (model.clone(), Tally::default(), BaseDigest::of(&model.to_file()));
        Ok(Self { model, method, options, gradients, optimizer, evaluation: None, trained, tally, digest })
    }

    /// Takes a digest of the model's file that is already known, or being computed. Without it, the
    /// first checkpoint reads all of the file.
    #[must_use]
    pub fn with_digest(self, digest: BaseDigest) -> Self {
        Self { digest, ..self }
    }

    /// The memory that training of a checked file needs, before its weights are loaded.
    ///
    /// # Errors
    /// As [`Gradients::memory_of`].
    pub fn memory_of(file: &Checked, method: &Method, options: &TrainerOptions) -> Result<Memory, Error> {
        Gradients::memory_for(file, &method.trained(file.weights())?, &options.gradients, method.parameters(options))
    }

    /// The memory that was estimated before anything was allocated.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.gradients.memory()
    }

    /// The work of the gradients of a step of so many rows and targets ([`Gradients::work`]).
    #[must_use]
    pub fn work(&self, rows: u32, targets: u32) -> kernels::Work {
        self.gradients.work(rows, targets)
    }

    /// How values are kept: what [`Checkpointing::Auto`] chose.
    #[must_use]
    pub fn checkpointing(&self) -> Checkpointing {
        self.gradients.checkpointing()
    }

    /// What was counted so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Number of trained elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.gradients.parameters.elements()
    }

    /// Changes the parameters by the gradients of the loss of a batch.
    ///
    /// # Errors
    /// As [`Gradients::compute_async`]. A step that fails or is cancelled changes no parameter, no
    /// moment and no count. [`Error::NotFinite`] after [`SKIPS`] steps in a row without a change.
    pub async fn step_async(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Step, Error> {
        let (seed, number) = (self.options.seed, self.tally.steps + 1);
        let keys = move |n: u32| random::key(seed, number, n);
        let loss = self.gradients.compute_with(documents, &keys, watch).await?;
        let rate = self.options.rate.at(self.tally.steps);
        let update = self.tally.updates + 1;
        let squares = match loss.loss.is_finite() {
            true => self.optimizer.step(&mut self.gradients.states, rate, self.options.clip, update).await?,
            false => f32::NAN,
        };
        self.tally.steps = number;
        let mut skipped = None;
        if squares.is_finite() {
            (self.tally.updates, self.tally.skipped_in_a_row) = (update, 0);
        } else {
            self.tally.skipped += 1;
            self.tally.skipped_in_a_row += 1;
            let first = self.gradients.first_not_finite(documents, &keys).await?;
            let first = first.map_or_else(|| "the norm of all gradients".to_string(), |first| first.to_string());
            if self.tally.skipped_in_a_row >= SKIPS {
                return Err(Error::NotFinite { step: number, steps: SKIPS, first });
            }
            skipped = Some(first);
        }
        Ok(Step { number, loss, norm: f64::from(squares).sqrt(), rate, skipped })
    }

    /// The loss of documents, without dropout and without changing anything.
    ///
    /// # Errors
    /// As [`Gradients::compute_async`].
    pub async fn evaluate_async(&mut self, documents: &[Document], watch: Watch<'_>) -> Result<Loss, Error> {
        let packed = self.gradients.packed(documents, &|_| [0; 2])?;
        if self.evaluation.is_none() {
            let options = &self.options.gradients;
            let free = options.memory_bytes.or_else(|| self.model.available_bytes());
            let rec = losses(&Subject::from(&self.model), &self.gradients.parameters, options.capacity(), free)?;
            let plan = self.model.executor().plan_async(rec, self.model.weights(), &options.plan()).await?;
            self.evaluation = Some(plan);
        }
        let Some(plan) = &mut self.evaluation else { unreachable!("made above") };
        let mut sum = Loss { targets: packed.targets, weight: packed.weight, ..Loss::default() };
        for step in &packed.steps {
            let outputs = plan.run_async(&mut self.gradients.states, step, watch).await?.wait_async().await?;
            sum.add(outputs.f32(0), &step.loss_weights);
        }
        Ok(sum)
    }

    /// Times the dispatches of the first step of a batch, without a change; needs a GPU with
    /// timestamps.
    ///
    /// # Errors
    /// As [`Gradients::profile_async`].
    pub async fn profile_async(&mut self, documents: &[Document]) -> Result<kernels::Profile, Error> {
        self.gradients.profile_async(documents).await
    }

    /// The parameters: factors, or weights of the model.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn parameters_async(&self) -> Result<Vec<Parameter>, Error> {
        self.gradients.parameters.values(&self.gradients.states).await
    }

    /// The gradients of the last batch, before clipping.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn gradients_async(&self) -> Result<Vec<Parameter>, Error> {
        self.gradients.gradients_async().await
    }

    /// The trained factors; none if the weights of the model are trained.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn factors_async(&self) -> Result<Vec<FactorPair>, Error> {
        let Trained::Factors(factors) = &self.trained else { return Ok(vec![]) };
        let mut sides = self.parameters_async().await?.into_iter();
        let mut next = || sides.next().expect("two sides for each pair");
        let pair = |pair: &FactorPair| {
            let (a, b) = (next(), next().values);
            let a = if pair.target == EMBEDDING { transpose(&a.values, a.cols as usize) } else { a.values };
            FactorPair { a, b, ..pair.clone() }
        };
        Ok(factors.iter().map(pair).collect())
    }
}
