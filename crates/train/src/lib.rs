//! Exact gradients of Gemma and Qwen models, on any GPU and on the CPU.
//!
//! The forward pass is the recording that runs the model. This crate walks it in reverse and
//! appends the derivative of each operation to the same recording, so a plan computes both.
//!
//! In reading order:
//!
//! * [`Document`] is an example as token ids. [`Data`] reads examples from files, [`Stream`] reads
//!   them once, both by the [`Texts`] of a model; [`Batches`] puts them in an [`Order`].
//! * [`Trained`] says what is trained: low-rank factors ([`FactorPair`]), or weights of the model.
//! * [`Targets`] chooses the weights that get factors, and makes new factors.
//! * [`Gradients`] computes the [`Loss`] of a batch and its gradients ([`Parameter`]).
//! * [`GradientOptions`] has the rows of a step, the [`Checkpointing`], and what is captured.
//! * [`Memory`] is what all this needs, known before anything is allocated.

#[cfg(not(target_arch = "wasm32"))]
mod adapter;
mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod blocking;
mod checkpoint;
mod data;
mod error;
#[cfg(not(target_arch = "wasm32"))]
mod files;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod gradients;
mod hex;
#[cfg(not(target_arch = "wasm32"))]
mod log;
mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod merge;
mod method;
#[cfg(not(target_arch = "wasm32"))]
mod open;
mod optimizer;
mod options;
mod parameters;
mod random;
mod recorded;
mod replay;
#[cfg(not(target_arch = "wasm32"))]
mod rewrite;
mod schedule;
mod tally;
mod tape;
mod targets;
#[cfg(not(target_arch = "wasm32"))]
mod temporary;
#[cfg(target_arch = "wasm32")]
#[path = "temporary/none.rs"]
mod temporary;
mod trainer;
mod vjp;

/// The crates whose types this crate takes: executors and models.
pub use {kernels, model};

#[cfg(not(target_arch = "wasm32"))]
pub use adapter::{PeftOptions, save_gguf, save_peft};
pub use batch::{Document, NO_TARGET};
pub use checkpoint::{BaseDigest, CheckpointError, Difference, Facts, Restored};
pub use data::{Batches, Counts, Data, DataOptions, Learn, Longer, Order, Piece, Position, Stream, Texts};
pub use error::{Error, FolderError};
#[cfg(not(target_arch = "wasm32"))]
pub use files::{save_captures, save_parameters};
#[cfg(not(target_arch = "wasm32"))]
pub use folder::{Begin, Folder};
pub use gradients::{CapturedRows, Gradients, Loss, Traced};
#[cfg(not(target_arch = "wasm32"))]
pub use log::Record;
pub use memory::Memory;
#[cfg(not(target_arch = "wasm32"))]
pub use merge::{Merged, merge, save_model};
pub use method::{Full, Lora, Method};
pub use model::FactorPair;
pub use options::{Capture, Captured, Checkpointing, GradientOptions, Normalize, TrainerOptions};
pub use parameters::{Parameter, Trained};
#[cfg(not(target_arch = "wasm32"))]
pub use rewrite::{Fallback, Writing};
pub use schedule::{Rate, Schedule};
pub use tally::Tally;
pub use targets::Targets;
pub use trainer::{SKIPS, Step, Trainer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
