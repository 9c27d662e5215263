//! Models on an executor, their sessions and their adapters: all that needs kernels.

pub mod adapter;
pub mod answer;
pub mod arch;
pub mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod blocking;
pub(crate) mod chunk;
pub mod generate;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod meta;
pub mod model;
pub(crate) mod needs;
pub(crate) mod options;
pub(crate) mod plans;
pub(crate) mod recording;
pub(crate) mod rope;
pub(crate) mod runner;
pub(crate) mod samples;
pub mod sampling;
pub(crate) mod sequence;
pub mod session;
pub(crate) mod shift;
pub(crate) mod snapshot;
pub(crate) mod walk;

pub use {
    adapter::{
        Adapter, AdapterError, AdapterFile, Applied, EMBEDDING, FactorPair, OUTPUT, peft_module, peft_name, transpose,
    },
    answer::AnswerText,
    batch::{Batch, Drawn},
    cpu_ref::KvType,
    generate::{Finish, Generate, GenerateOptions, Generated},
    kernels::{Device, Executor, Precision},
    model::{Checked, Model},
    needs::Needs,
    sampling::Sampling,
    session::{Session, SessionOptions, Tapped},
    snapshot::SnapshotError,
    walk::{NotRun, Walk, WalkStep},
};
