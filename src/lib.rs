//! Weft: run and fine-tune Gemma and Qwen models from GGUF files. A facade over the workspace's crates.

pub use cpu_ref;
pub use gguf;
pub use kernels;
pub use model;
pub use train;
