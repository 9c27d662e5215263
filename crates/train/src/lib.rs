//! Trains Gemma and Qwen models in GGUF files, quantized ones too, on any GPU and on the CPU.
//!
//! ```no_run
//! use train::kernels::{Executor, Watch};
//! use train::model::Model;
//! use train::{Batches, Data, DataOptions, Lora, Texts, Trainer, TrainerOptions};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let model = Model::open("qwen3-8b-q4_k_m.gguf")?.on(Executor::best())?;
//!     let data = Data::open(&["facts.jsonl".into()], Texts::from(&model), &DataOptions::default(), &|_| {})?;
//!     let mut batches = Batches::new(data, 8, 0); // examples of a step, seed
//!     let mut trainer = Trainer::new(&model, Lora::new(16), &TrainerOptions::default())?;
//!     for _ in 0..3 * batches.per_epoch() {
//!         let step = trainer.step(&batches.next()?, Watch::default())?;
//!         println!("{:4} {:.4}", step.number, step.loss.loss);
//!     }
//!     trainer.save_peft("facts")?;
//!     Ok(())
//! }
//! ```
//!
//! In reading order:
//!
//! * [`Trainer`] makes steps with AdamW, by [`TrainerOptions`] and a [`Schedule`]. [`Lora`] or
//!   [`Full`] is the [`Method`]: what is trained, and how it begins. A [`Step`] has its loss.
//! * [`Data`] reads examples from files, [`Stream`] reads them once, both by the [`Texts`] of a
//!   model; [`Batches`] puts them in an [`Order`]. [`Document`] is an example as token ids.
//! * [`defaults`] has the settings of a run that nobody chose. [`Ending`] says when a run ends.
//! * [`Folder`] is the folder of a run, with checkpoints and the log. A run that goes on from a
//!   checkpoint has the bits of a run that was not stopped.
//! * [`write_peft`], [`write_gguf`], [`write_merged`] and [`write_model`] write the results. What
//!   takes a path instead ([`save_peft`], [`merge()`]) is for native hosts, as [`Folder`] is.
//! * [`Memory`] is what all this needs, known before anything is allocated.
//!
//! The gradients are there by themselves, too. The forward pass is the recording that runs the
//! model. This crate walks it in reverse and appends the derivative of each operation to the same
//! recording, so a plan computes both.
//!
//! * [`Trained`] says what is trained: low-rank factors ([`FactorPair`]), or weights of the model.
//! * [`Targets`] chooses the weights that get factors, and makes new factors.
//! * [`Gradients`] computes the [`Loss`] of a batch and its gradients ([`Parameter`]).
//! * [`GradientOptions`] has the rows of a step, the [`Checkpointing`], and what is captured.

mod adapter;
mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod blocking;
mod checkpoint;
mod data;
pub mod defaults;
mod ending;
mod error;
mod files;
#[cfg(not(target_arch = "wasm32"))]
mod folder;
mod gradients;
mod hex;
mod host;
mod log;
mod memory;
mod merge;
mod method;
mod optimizer;
mod options;
mod parameters;
#[cfg(not(target_arch = "wasm32"))]
mod paths;
mod random;
mod recorded;
mod replay;
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

pub use adapter::{PeftOptions, write_gguf, write_peft};
pub use batch::{Document, NO_TARGET};
pub use checkpoint::{BaseDigest, CheckpointError, Difference, Facts, Restored};
pub use data::{Batches, Counts, Data, DataOptions, Learn, Longer, Order, Piece, Position, Stream, Texts};
pub use ending::{Ended, Ending};
pub use error::{Error, FolderError};
pub use files::{write_captures, write_parameters};
#[cfg(not(target_arch = "wasm32"))]
pub use folder::{Begin, Folder};
pub use gradients::{CapturedRows, Gradients, Loss, Traced};
pub use log::Record;
pub use memory::Memory;
pub use merge::{Merged, write_merged, write_model};
pub use method::{Full, Lora, Method};
pub use model::FactorPair;
pub use options::{Capture, Captured, Checkpointing, GradientOptions, Normalize, TrainerOptions};
pub use parameters::{Parameter, Trained};
#[cfg(not(target_arch = "wasm32"))]
pub use paths::{merge, save_captures, save_gguf, save_model, save_parameters, save_peft};
pub use rewrite::{Fallback, Writing};
pub use schedule::{Rate, Schedule};
pub use tally::Tally;
pub use targets::Targets;
pub use trainer::{SKIPS, Step, Trainer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
