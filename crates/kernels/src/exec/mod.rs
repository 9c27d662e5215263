//! The two executors: a GPU that encodes plans, and the oracles on the CPU.

pub mod agree;
pub(crate) mod angles;
pub mod cpu;
pub(crate) mod cuts;
mod finite;
pub mod gpu;
mod inputs;
#[cfg(feature = "interop")]
mod interop;
mod listed;
mod pending;
mod plan;
pub mod profile;
mod quantized;
pub(crate) mod readback;
mod receive;
mod room;
pub mod states;
mod upload;
mod watch;
pub mod weights;

pub use finite::NotFinite;
pub use pending::Pending;
pub(crate) use plan::Compiled;
pub use plan::Plan;
pub use room::Room;
pub use watch::{Outputs, Watch};
