//! Transformer kernels in WGSL: declared once as rows, recorded as data, planned, and run on a GPU or on the oracles.
//!
//! Unsafe code is in `memory`, where numbers of the driver are read through wgpu's native handles, and where devices and shaders ask for
//! less checking than foreign code would need (`device`, `pipelines`), and where threads share staging memory
//! (`upload`).

#[macro_use]
pub mod row;
#[cfg(not(target_arch = "wasm32"))]
pub mod choose;
pub mod compare;
pub mod compose;
pub mod device;
pub mod error;
pub mod exec;
pub mod format;
#[cfg(not(target_arch = "wasm32"))]
pub mod measure;
pub mod memory;
pub mod ops;
pub mod parity;
pub mod pipelines;
pub mod plan;
pub mod profile;
pub mod record;
#[cfg(not(target_arch = "wasm32"))]
pub mod run;
pub mod sampling;
pub mod states;
#[cfg(not(target_arch = "wasm32"))]
pub mod sweep;
pub mod table;
pub mod tensor;
#[cfg(not(target_arch = "wasm32"))]
pub mod tune;
mod upload;
pub mod weights;

#[cfg(not(target_arch = "wasm32"))]
pub use choose::{Chosen, Demand, GPU_MIN_SIZE, should_use_gpu};
pub use device::{AdapterSummary, Caps, Class, Device, Limits, Select};
pub use error::Error;
pub use exec::{Executor, Outputs, Pending, Plan, StepInput, Watch};
pub use pipelines::Preparing;
pub use pipelines::clock::Spent;
pub use plan::{PlanOptions, Planned};
pub use profile::{Profile, Roof};
pub use record::{LowRank, Recorder, RopeTable};
pub use sampling::SampleParams;
pub use states::States;
pub use table::Table;
pub use tensor::{Counts, Input, KvState, Lead, Shape, State, StateKind, Tensor, Weight};
pub use weights::{TensorBytes, Weights};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
