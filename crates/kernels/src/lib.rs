//! Transformer kernels in WGSL. Kernels are declared once. Operations are recorded as data,
//! planned, and run on a GPU or by the oracles on the CPU.
//!
//! Unsafe code is in four modules: `memory` reads numbers of the driver through wgpu's native
//! handles, `device` requests an experimental feature, `pipelines` builds shaders without loop
//! bounds and restores saved pipelines, and `upload` shares staging memory between threads.

pub mod caps;
pub mod graph;
#[macro_use]
pub mod kernel;
pub mod device;
pub mod error;
pub mod exec;
pub mod lower;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
pub mod ops;
pub mod plan;
/// Test support. Requires the feature `testing`.
#[cfg(feature = "testing")]
pub mod testing;

/// The version of wgpu that the functions of the feature `interop` take.
#[cfg(feature = "interop")]
pub use wgpu;

pub use caps::table::Table;
pub use caps::{Caps, Class};
pub use device::executor::Executor;
pub use device::pipelines::Preparing;
pub use device::pipelines::clock::Spent;
pub use device::{AdapterSummary, Device, Limits, Select};
pub use error::Error;
pub use exec::profile::{Profile, Roof};
pub use exec::states::States;
pub use exec::weights::{TensorBytes, Weights};
pub use exec::{Outputs, Pending, Plan, Watch};
pub use graph::input::StepInput;
pub use graph::record::{LowRank, RopeTable};
pub use graph::sampling::SampleParams;
pub use graph::tensor::{Counts, Element, Input, KvState, Lead, Shape, State, StateKind, Tensor, Weight};
#[cfg(not(target_arch = "wasm32"))]
pub use native::choose::{Chosen, Demand, GPU_MIN_SIZE, should_use_gpu};
#[cfg(not(target_arch = "wasm32"))]
pub use native::run;
pub use ops::Recorder;
pub use plan::{PlanOptions, Planned, Precision};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
