//! Scalar reference implementations of the operations of transformer language models. They are the
//! oracles of GPU kernels, and they run whole models on a machine without a GPU.
//!
//! ```
//! use cpu_ref::{AttentionSpec, Mask, attention};
//!
//! fn main() {
//!     // Two keys with scores 0 and ln 3: their values mix one to three.
//!     let spec = AttentionSpec { heads: 1, kv_heads: 1, head_dim: 1, scale: 1.0, softcap: None };
//!     let (q, k, v) = ([1.0], [0.0, 3f32.ln()], [4.0, 8.0]);
//!     let mut y = [0.0];
//!     attention(&spec, &q, &k, &v, Mask::Causal.visible(1, 2), &mut y);
//!     println!("{y:?}");
//!     assert!((y[0] - 7.0).abs() < 1e-6);
//! }
//! ```
//!
//! Every function takes f32 slices in row-major order, accumulates in f64 and writes its result to
//! `y`. It is written from the paper or the format definition that its documentation names. There
//! are no threads, no SIMD, no unsafe code and no hidden constants: every scalar is an argument. A
//! wrong length is a bug in the caller and panics with a message that names the operation and the
//! operand.
//!
//! Shape letters: T queries, S keys, D embedding, N query heads, K kv heads, H head dim, F ffn, V
//! vocabulary.
//!
//! In reading order, as a model uses them:
//!
//! * [`embed`] reads rows of a table; [`Rows`] is a matrix of any type of GGUF.
//! * [`rms_norm`], [`matmul`] and [`rope`] come before [`attention`], which reads the keys that
//!   [`kv_append`] stored as [`KvType`]. [`Mask`] says which keys a row sees.
//! * [`swiglu`] and [`geglu`] are gated activations. [`route`] chooses experts, and
//!   [`matmul_experts`] and [`combine_experts`] compute with them.
//! * [`softmax`], [`top_k`], [`penalize`] and [`sample`] make the next token of logits.
//! * [`nmse`] is the measure by which results are compared; [`worst_row`] takes it of every row.

/// The oracles of a family: a file for each, and the names in it that the crate shows. A file
/// without names shows its function.
macro_rules! oracles {
    ($($file:ident $(: $($name:ident),+)?;)*) => {
        $(pub(crate) mod $file; oracles! { @show $file $(: $($name),+)? })*
    };
    (@show $file:ident) => { pub use $file::$file; };
    (@show $file:ident: $($name:ident),+) => { pub use $file::{$($name),+}; };
}

mod check;
#[cfg(test)]
mod differences;
mod dot;
mod metric;
mod rows;

mod attention;
mod elementwise;
mod experts;
mod matmul;
mod norm;
mod sampling;
mod training;

pub use attention::*;
pub use elementwise::*;
pub use experts::*;
pub use matmul::*;
pub use metric::{RowError, nmse, worst_row};
pub use norm::*;
pub use rows::Rows;
pub use sampling::*;
pub use training::*;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
