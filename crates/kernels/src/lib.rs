//! Transformer operations in WGSL, for any GPU that wgpu supports, and on the CPU. The crate knows
//! no models, files or tokenizers.
//!
//! One operation on slices of your own:
//!
//! ```
//! use kernels::{Device, Error, cpu_ref, run};
//!
//! fn main() -> Result<(), Error> {
//!     let device = Device::auto()?; // discrete before integrated before software
//!     let (rows, dim, eps) = (8, 2048, 1e-6);
//!     let x: Vec<f32> = (0..rows * dim).map(|i| (i as f32 * 0.37).sin()).collect();
//!     let w = vec![1.5; dim];
//!
//!     let y = run::rms_norm(&device, &x, Some(&w), dim, eps)?;
//!
//!     let mut expected = vec![0.0; x.len()];
//!     cpu_ref::rms_norm(&x, Some(&w), dim, f64::from(eps), &mut expected);
//!     println!("{}: {:?}", device.adapter().name, &y[..4]);
//!     assert!(cpu_ref::nmse(&expected, &y) < 1e-10);
//!     assert!(run::rms_norm(&device, &x, Some(&w[1..]), dim, eps).is_err()); // wrong length of w
//!     Ok(())
//! }
//! ```
//!
//! Whole models are recorded, planned once, and run any number of times. In reading order:
//!
//! * [`Device`] opens an adapter, and [`Executor`] is a device or the CPU. [`Caps`] lists the
//!   abilities of a device, and [`Table`] from which sizes on it takes which kernel.
//! * [`run`] has single operations on slices: one call each, without a recording.
//! * [`Recorder`] collects the operations of one step. [`ops`] has a function for each: it reads
//!   [`Tensor`]s, [`Weight`]s and [`State`]s, and makes new tensors.
//! * [`Weights`] holds matrices and vectors in the formats of GGUF. [`States`] holds the data that
//!   outlives a step: KV caches and token ids.
//! * [`plan`] compiles a recording to dispatches: it fuses operations and reuses buffers.
//!   [`PlanOptions`] chooses the [`Precision`] and the values to tap.
//! * [`Executor::plan`] makes a [`Plan`] that runs. [`StepInput`] is what changes with every step,
//!   [`Pending`] a step on its way, and [`Outputs`] its results.
//! * [`Plan::agree_async`] runs a step on the device and on the host, and says for each operation
//!   how far both agree.
//! * [`Profile`] has the time of every kernel. [`measure`] measures a device, [`tune`] finds its
//!   thresholds, and [`choose`] decides between a device and the CPU.
//! * [`Error`] names the limit, the shape or the device that failed.
//!
//! The feature `interop` shares a device with wgpu code of your own. The feature `testing` adds
//! the parity cases of every kernel and the inside of this crate.
//!
//! Unsafe code is in four modules: `memory` reads numbers of the driver through wgpu's native
//! handles, `device` requests an experimental feature, `pipelines` builds shaders without loop
//! bounds and restores saved pipelines, and `upload` shares staging memory between threads.

mod caps;
#[macro_use]
mod graph;
#[macro_use]
mod kernel;
mod attention;
mod device;
mod elementwise;
mod error;
mod exec;
mod experts;
mod language;
mod matmul;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod norm;
pub mod ops;
pub mod plan;
mod platform;
mod sampling;
/// Parity cases, and the inside of the crate for tests. Requires the feature `testing`.
#[cfg(feature = "testing")]
pub mod testing;
mod training;

/// What [`kernel!`] refers to.
#[doc(hidden)]
pub mod declared {
    pub use crate::kernel::{
        Access, Fill, Kernel, KvUse, Needs, Only, PEAK, Part, Scalar, Variant, dispatch, format, reading,
    };
}

/// The crates whose types this crate takes: weight formats, cache types and masks.
pub use {cpu_ref, gguf};

/// The version of wgpu that the functions of the feature `interop` take.
#[cfg(feature = "interop")]
pub use wgpu;

pub use caps::table::{THRESHOLDS, Table, Threshold};
pub use caps::{Caps, Class};
pub use device::executor::Executor;
pub use device::memory::Memory;
pub use device::pipelines::Preparing;
pub use device::pipelines::clock::Spent;
pub use device::{AdapterSummary, Device, Limits, Select, Without};
pub use error::Error;
pub use exec::agree::rows::Difference;
pub use exec::agree::{Agreement, Mirror};
pub use exec::profile::{Profile, Roof, Timed, Total};
pub use exec::states::States;
pub use exec::weights::{TensorBytes, Weights};
pub use exec::{NotFinite, Outputs, Pending, Plan, Room, Watch};
pub use gguf::Progress;
pub use graph::input::StepInput;
pub use graph::operation::{Io, Operation, Work};
pub use graph::record::{Dropped, LowRank, Node, Phase, Recorder as RecorderOf, RopeTable, Stage, Tap};
pub use graph::sampling::SampleParams;
pub use graph::tensor::{Counts, Element, Input, KvState, Lead, Shape, State, StateKind, Tensor, Weight};
pub use kernel::format::reads;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{blocking::block_on, choose, choose::should_use_gpu, measure, run, tune};
pub use ops::Recorder;
#[doc(inline)]
pub use plan::{PlanOptions, Planned, Precision};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
