//! How gradients are computed, what is read back beside them, and how a trainer changes parameters.

use crate::schedule::Rate;
use kernels::cpu_ref::AdamwSpec;
use kernels::{PlanOptions, Precision};

/// Which values of the forward pass are kept for the derivatives.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Checkpointing {
    /// All.
    #[default]
    None,
    /// The values between layers. Every layer is computed again before its derivatives, with the
    /// same bits.
    Layer,
    /// All if they fit into the free memory, else the values between layers.
    Auto,
}

/// What the loss of a batch is the mean of.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Normalize {
    /// All targets of the batch, weighted.
    #[default]
    Tokens,
    /// The means of the examples that have targets: a short example counts as much as a long one,
    /// and an example of several documents (see [`Document::continues`](crate::Document)) as much
    /// as one of a single document.
    Sequences,
}

/// How gradients are computed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GradientOptions {
    /// Rows of a step.
    pub rows: u32,
    /// The most rows that documents fill a step with, if that is known to be fewer: no memory is
    /// taken for more.
    pub most_rows: Option<u32>,
    /// Whether a step has as many whole documents as it has room for, or only one.
    pub packing: bool,
    /// What the loss of a batch is the mean of.
    pub normalize: Normalize,
    pub checkpointing: Checkpointing,
    /// Whether products round their operands.
    pub precision: Precision,
    /// What is read back beside losses and gradients.
    pub captures: Vec<Capture>,
    /// Whether every named value and the derivative by it are told in few numbers
    /// ([`crate::Traced`]).
    pub trace: bool,
    /// Bytes that may be allocated; `None` for what the executor has free.
    pub memory_bytes: Option<u64>,
}

impl Default for GradientOptions {
    fn default() -> Self {
        let (checkpointing, precision, normalize) = (Checkpointing::None, Precision::F32, Normalize::Tokens);
        Self {
            rows: 1024,
            most_rows: None,
            packing: true,
            normalize,
            checkpointing,
            precision,
            captures: vec![],
            trace: false,
            memory_bytes: None,
        }
    }
}

impl GradientOptions {
    /// Rows of a step.
    #[must_use]
    pub fn rows(self, rows: u32) -> Self {
        Self { rows, ..self }
    }

    /// The most rows that documents fill a step with: no memory is taken for more.
    #[must_use]
    pub fn most_rows(self, most_rows: Option<u32>) -> Self {
        Self { most_rows, ..self }
    }

    /// Rows that steps have room for.
    pub(crate) fn capacity(&self) -> u32 {
        self.most_rows.unwrap_or(u32::MAX).min(self.rows).max(1)
    }

    /// Whether a step has as many whole documents as it has room for; true by default. No document
    /// attends to another, so the loss is the same to rounding.
    #[must_use]
    pub fn packing(self, packing: bool) -> Self {
        Self { packing, ..self }
    }

    /// What the loss of a batch is the mean of.
    #[must_use]
    pub fn normalize(self, normalize: Normalize) -> Self {
        Self { normalize, ..self }
    }

    /// Which values are kept.
    #[must_use]
    pub fn checkpointing(self, checkpointing: Checkpointing) -> Self {
        Self { checkpointing, ..self }
    }

    /// Whether products round their operands: by default never. With [`Precision::Fast`], products
    /// of 16 rows and more and their derivatives read f16 with a power of two for each row, where
    /// the device has cooperative matrices. Values between operations, the sums of products and all
    /// gradients stay f32. On other devices, and on the CPU, nothing is rounded.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// The options of the plan.
    pub(crate) fn plan(&self) -> PlanOptions {
        PlanOptions::training().precision(self.precision)
    }

    /// What is read back beside losses and gradients.
    #[must_use]
    pub fn captures(self, captures: Vec<Capture>) -> Self {
        Self { captures, ..self }
    }

    /// Whether every named value and the derivative by it are told in few numbers.
    #[must_use]
    pub fn trace(self, trace: bool) -> Self {
        Self { trace, ..self }
    }

    /// Bytes that may be allocated; `None` for what the executor has free.
    #[must_use]
    pub fn memory_bytes(self, bytes: Option<u64>) -> Self {
        Self { memory_bytes: bytes, ..self }
    }
}

/// A named value of the forward pass, or the derivative of the loss by it, in every layer that has
/// a value of this name. The README lists the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    pub name: String,
    pub what: Captured,
}

/// What is captured of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    Value,
    Gradient,
}

impl Capture {
    /// The value of this name.
    #[must_use]
    pub fn value(name: impl Into<String>) -> Self {
        Self { name: name.into(), what: Captured::Value }
    }

    /// The derivative by the value of this name.
    #[must_use]
    pub fn gradient(name: impl Into<String>) -> Self {
        Self { name: name.into(), what: Captured::Gradient }
    }
}

/// Names of values that the backward pass makes.
const MADE_BACKWARD: [&str; 1] = ["attn_lse"];

impl Capture {
    /// Whether the backward pass makes the value, not the model.
    pub(crate) fn is_made_backward(&self) -> bool {
        self.what == Captured::Value && MADE_BACKWARD.contains(&self.name.as_str())
    }

    /// The name of a layer's capture in files.
    #[must_use]
    pub fn tensor_name(&self, layer: u32) -> String {
        let prefix = if self.what == Captured::Gradient { "grad." } else { "" };
        match self.name.as_str() {
            name @ "embed" => format!("{prefix}{name}"),
            name => format!("{prefix}blk.{layer}.{name}"),
        }
    }
}

impl std::fmt::Display for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.what {
            Captured::Value => write!(f, "{}", self.name),
            Captured::Gradient => write!(f, "grad.{}", self.name),
        }
    }
}

impl std::str::FromStr for Capture {
    type Err = std::convert::Infallible;

    /// `NAME` for the value, `grad.NAME` for the derivative by it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix("grad.") {
            Some(name) => Self::gradient(name),
            None => Self::value(text),
        })
    }
}

/// How a trainer changes parameters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrainerOptions {
    /// How gradients are computed.
    pub gradients: GradientOptions,
    /// The learning rate of every step.
    pub rate: Rate,
    /// The constants of AdamW.
    pub adamw: AdamwSpec,
    /// Whether norms, biases and other vectors of a model decay as matrices do.
    pub decay_vectors: bool,
    /// The largest norm of all gradients together: larger gradients are scaled down to it.
    pub clip: Option<f64>,
    /// Decides about dropout.
    pub seed: u64,
    /// Whether [`Trainer::evaluate_async`](crate::Trainer::evaluate_async) will be called:
    /// estimates of memory hold its plan.
    pub validation: bool,
}

impl Default for TrainerOptions {
    /// A constant rate of 2e-4, betas 0.9 and 0.999, eps 1e-8, a decay of 0.01 of matrices,
    /// gradients clipped to a norm of 1.
    fn default() -> Self {
        let adamw = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.01 };
        let (gradients, rate) = (GradientOptions::default(), Rate::constant(2e-4));
        Self { gradients, rate, adamw, decay_vectors: false, clip: Some(1.0), seed: 0, validation: false }
    }
}

impl TrainerOptions {
    /// How gradients are computed.
    #[must_use]
    pub fn gradients(self, gradients: GradientOptions) -> Self {
        Self { gradients, ..self }
    }

    /// The learning rate of every step.
    #[must_use]
    pub fn rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// The constants of AdamW.
    #[must_use]
    pub fn adamw(self, adamw: AdamwSpec) -> Self {
        Self { adamw, ..self }
    }

    /// Whether norms, biases and other vectors of a model decay as matrices do.
    #[must_use]
    pub fn decay_vectors(self, decay_vectors: bool) -> Self {
        Self { decay_vectors, ..self }
    }

    /// The largest norm of all gradients together.
    #[must_use]
    pub fn clip(self, clip: Option<f64>) -> Self {
        Self { clip, ..self }
    }

    /// Decides about dropout.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether [`Trainer::evaluate_async`](crate::Trainer::evaluate_async) will be called:
    /// estimates of memory hold its plan.
    #[must_use]
    pub fn validation(self, validation: bool) -> Self {
        Self { validation, ..self }
    }
}
