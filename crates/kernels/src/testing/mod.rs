//! Parity cases of every operation, the sweep that draws them, and how results are compared.

pub mod cases;
pub mod compare;
pub mod parity;
#[cfg(not(target_arch = "wasm32"))]
pub mod sweep;
