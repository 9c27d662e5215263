//! Weft runs language models of the Gemma and Qwen families from GGUF files, in pure Rust and WGSL.
//!
//! ```no_run
#![doc = include_str!("../examples/chat.rs")]
//! ```
//!
//! This crate is a facade over five crates, each of which can be used alone. In reading order:
//!
//! * [`model`] opens a file, and chats with the model in it.
//! * [`train`] computes exact gradients of a model by low-rank factors of its weights.
//! * [`kernels`] is beneath it: WGSL kernels with typed dispatchers, a planner and two executors.
//! * [`cpu_ref`] has one plain function for each operation, the oracle of its kernels.
//! * [`gguf`] reads, checks, dequantizes, quantizes and writes GGUF files.
//!
//! The feature `mmap`, on by default, lets `gguf` map files.

#[doc(no_inline)]
pub use {cpu_ref, gguf, kernels, model, train};
