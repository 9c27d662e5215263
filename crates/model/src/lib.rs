//! Runs Gemma and Qwen models from GGUF files, on a GPU or on the CPU.

pub mod adapter;
pub mod arch;
pub mod batch;
pub mod chat;
mod chunk;
pub mod error;
pub mod generate;
mod load;
mod meta;
pub mod model;
mod needs;
#[cfg(not(target_arch = "wasm32"))]
pub mod ollama;
mod rope;
mod runner;
pub mod sampling;
mod sequence;
pub mod session;
mod shift;
mod snapshot;
pub mod tokenizer;

pub use adapter::{Adapter, AdapterError, AdapterFile, Applied};
pub use batch::{Batch, Drawn};
pub use cpu_ref::KvType;
pub use error::{Error, Size};
pub use generate::{Finish, Generate, GenerateOptions, Generated};
pub use kernels::{Device, Executor, Precision};
pub use model::{Checked, Model, ModelFile};
pub use needs::Needs;
pub use sampling::Sampling;
pub use session::{Session, SessionOptions, Tapped};
pub use snapshot::SnapshotError;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
