//! Scalar reference implementations of the operations of transformer language models.
//!
//! Every function takes f32 slices in row-major order, accumulates in f64 and writes its result to
//! `y`. It is written from the paper or the format definition that its documentation names. There
//! are no threads, no SIMD, no unsafe code and no hidden constants: every scalar is an argument. A
//! wrong length is a bug in the caller and panics with a message that names the operation and the
//! operand.
//!
//! Shape letters: T queries, S keys, D embedding, N query heads, K kv heads, H head dim, F ffn, V
//! vocabulary.

mod check;
mod dot;
mod metric;
pub mod ops;
mod rows;

pub use metric::nmse;
pub use ops::*;
pub use rows::Rows;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
