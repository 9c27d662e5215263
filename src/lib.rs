//! Weft: language models from GGUF files in pure Rust and WGSL. A facade over the crates of the
//! workspace.

pub use cpu_ref;
pub use gguf;
pub use kernels;
pub use model;
