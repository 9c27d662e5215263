//! The errors of this crate.

use crate::checkpoint::CheckpointError;
use crate::memory::Memory;
use gguf::shape_text;

/// What would fit.
fn smaller(rows: u32, layers: bool, factors: bool, fit: Option<u32>) -> String {
    let mut advice = vec![];
    advice.extend(fit.map(|fit| format!("steps of {fit} rows fit, and documents of as many tokens")));
    if layers {
        advice.push(format!("steps of {rows} rows fit if layers are computed again (checkpointing)"));
    }
    if factors {
        advice.push("low-rank factors in place of all weights fit (LoRA)".to_string());
    }
    if fit.is_none() {
        advice.insert(0, "steps of fewer rows do not fit either".to_string());
    }
    advice.join("; ")
}

/// Why a name gives nothing, where the model knows these names.
fn why(known: &str) -> String {
    if known.is_empty() { "no loss depends on it".to_string() } else { format!("the model names {known}") }
}

/// Reasons why gradients cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A discrete operation lies between the loss and a trained weight.
    #[error("the loss has no derivative through {operation}, which makes a discrete choice")]
    NotDifferentiable { operation: &'static str },
    /// A weight cannot be trained: its operation has only the derivative by its rows.
    #[error("the weight of {operation} cannot be trained: only the derivative by its rows exists")]
    NoGradient { operation: &'static str },
    /// A factor does not fit the weight that it is added to.
    #[error(
        "{target}: the factors are {} and {}, but the weight \
         is {}",
        shape_text(a),
        shape_text(b),
        shape_text(weight)
    )]
    Factors { target: String, a: [u32; 2], b: [u32; 2], weight: [u32; 2] },
    /// A weight cannot be trained.
    #[error("{target} cannot be trained: {reason}")]
    NotTrained { target: String, reason: &'static str },
    /// Weights, trained parameters and values do not fit into memory.
    #[error(
        "not enough memory: {memory} are needed for steps of {rows} rows, and {device} has {} \
         MB free beside the weights; {}",
        *available / 1_000_000,
        smaller(*rows, *layers, *factors, *fit)
    )]
    TooLarge {
        device: String,
        memory: Memory,
        available: u64,
        rows: u32,
        /// Whether steps of this size fit if layers are computed again.
        layers: bool,
        /// Whether steps of this size fit if low-rank factors are trained, and not all weights.
        factors: bool,
        /// The largest tried number of rows that fits.
        fit: Option<u32>,
    },
    /// No value of the model has this name, or no derivative reaches it.
    #[error("no {name} can be captured: {}", why(known))]
    Capture { name: String, known: String },
    /// The model has no such weight.
    #[error("the model has no weight {target}")]
    NoTarget { target: String },
    /// A line of a file of examples cannot be used.
    #[error("{file}, line {line}: {reason}")]
    Data { file: String, line: u64, reason: String },
    /// A file of examples cannot be read.
    #[error("{file}: {reason}")]
    Read { file: String, reason: String },
    /// Examples come from a pipe, but they are read many times.
    #[error(
        "{file}: it is a pipe or a device, but a file of examples is read many times; write it to \
         a file, or read it as a stream"
    )]
    Pipe { file: String },
    /// Files of examples have none that can be learnt.
    #[error(
        "{files}: no example that can be learnt; {bad} bad lines were skipped, and {dropped} \
         documents are too long"
    )]
    NoExample { files: String, bad: u64, dropped: u64 },
    /// Files of examples hold nothing.
    #[error("{files}: the file is empty")]
    Empty { files: String },
    /// Examples cannot be split so.
    #[error("{examples} examples cannot give a share of {share} for validation: {reason}")]
    Split { share: f64, examples: u64, reason: &'static str },
    /// A place is not one between batches of this data.
    #[error("no batch begins at \"{position}\": {reason}")]
    Position { position: String, reason: &'static str },
    /// A file of results cannot be written.
    #[error(transparent)]
    File(#[from] gguf::Error),
    /// Results have no form as a file.
    #[error("{reason}")]
    NoForm { reason: String },
    /// Results have no form as this file.
    #[error("{file}: {reason}")]
    Write { file: String, reason: String },
    /// A tensor would have a type that can be read but not written.
    #[error(
        "{tensor} is {ty}, which can be read but not written; choose one type for all changed \
         tensors: {}",
        gguf::quants::WRITTEN.map(|ty| ty.name()).join(", ")
    )]
    Unwritable { tensor: String, ty: &'static str },
    /// The result would replace a file that it is made from.
    #[error("{file} is also an input; name another file for the result")]
    Overwrites { file: String },
    /// Training makes no progress.
    #[error(
        "step {step} is the last of {steps} in a row whose loss or norm is no finite number, first \
         in {first}; the parameters are those before these steps"
    )]
    NotFinite { step: u64, steps: u32, first: String },
    /// A checkpoint is refused.
    #[error("{file}: {reason}")]
    Checkpoint {
        file: String,
        #[source]
        reason: CheckpointError,
    },
    /// A folder cannot hold a run.
    #[error("{}: {reason}", folder.display())]
    Folder {
        folder: std::path::PathBuf,
        #[source]
        reason: FolderError,
    },
    /// A document is longer than a step.
    #[error(
        "document {document} has {rows} tokens, a step has room for {capacity}; cut it, or make \
         steps longer"
    )]
    TooLong { document: usize, rows: usize, capacity: u32 },
    /// A document has an id outside the vocabulary.
    #[error("document {document} has the id {id}, but the vocabulary has {vocabulary} ids")]
    Id { document: usize, id: u32, vocabulary: u32 },
    /// A document lacks ids, or has more or fewer targets or weights than ids.
    #[error("document {document} has {ids} ids, {targets} targets and {weights} weights")]
    Lengths { document: usize, ids: usize, targets: usize, weights: usize },
    /// Errors of kernels and devices.
    #[error(transparent)]
    Kernels(#[from] kernels::Error),
    /// Errors of models and adapters.
    #[error(transparent)]
    Model(#[from] model::Error),
}

impl Error {
    pub(crate) fn no_form(reason: impl Into<String>) -> Self {
        Self::NoForm { reason: reason.into() }
    }

    /// Whether the message begins with the name of a file or a folder.
    #[must_use]
    pub fn names_a_file(&self) -> bool {
        match self {
            Self::Data { .. }
            | Self::Empty { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Checkpoint { .. } => true,
            Self::File(error) => matches!(error, gguf::Error::InFile { .. }),
            Self::Folder { .. } => true,
            _ => false,
        }
    }
}

/// Reasons why a folder cannot hold a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    #[error("the folder holds a run ({files}); go on with that run, or delete it")]
    HoldsRun { files: String },
    #[error("another process trains in this folder")]
    Busy,
    #[error("{action}")]
    Io {
        action: &'static str,
        #[source]
        error: std::io::Error,
    },
}
