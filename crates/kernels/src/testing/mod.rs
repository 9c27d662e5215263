//! Parity cases of every operation, the sweep that draws them, and the comparison of results.

pub mod cases;
pub mod compare;
pub mod parity;
#[cfg(not(target_arch = "wasm32"))]
pub mod sweep;
