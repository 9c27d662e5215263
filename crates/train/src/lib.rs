//! Exact gradients of Gemma and Qwen models, on any GPU and on the CPU.
//!
//! The forward pass is the recording that runs the model. This crate walks it in reverse and
//! appends the derivative of each operation to the same recording, so a plan computes both.
//!
//! In reading order:
//!
//! * [`Document`] is an example as token ids.
//! * [`FactorPair`] has the trained low-rank factors of a weight, and their gradients.
//! * [`Gradients`] computes the [`Loss`] of a batch and its gradients.

mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod blocking;
mod error;
mod gradients;
mod parameters;
mod replay;
mod tape;
mod vjp;

pub use batch::{Document, NO_TARGET};
pub use error::Error;
pub use gradients::{Checkpointing, GradientOptions, Gradients, Loss};
pub use model::FactorPair;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
