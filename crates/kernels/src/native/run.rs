//! Single operations on slices: no recording, no plan, one call each.
//!
//! Every function takes the device (or an executor, [`Executor::Cpu`] for the oracles), slices and
//! sizes, and returns a new vector. Slices whose lengths do not match are an [`Error::Shape`]. A
//! call uploads, runs and reads back. It keeps only the compiled pipeline, so record several
//! operations to run them in a row.

mod backward;
mod call;
mod experts;
mod operands;
mod training;

use crate::device::executor::Executor;
use crate::error::Error;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, StateKind};
use crate::ops;
pub use backward::*;
use call::{Call, argument, rotation};
use cpu_ref::{KvType, Mask};
pub use experts::*;
pub use operands::{Heads, Matrix};
pub use training::*;

/// y = (x - mean(x)) / sqrt(variance(x) + eps) * w + b over rows of `dim` elements; `w` and `b` are
/// \[dim\] or none.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn layer_norm(
    on: impl Into<Executor>,
    x: &[f32],
    w: Option<&[f32]>,
    b: Option<&[f32]>,
    dim: usize,
    eps: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("layer_norm", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let w = w.map(|w| call.vector("w", w, dim)).transpose()?;
    let b = b.map(|b| call.vector("b", b, dim)).transpose()?;
    let y = ops::layer_norm(&mut call.rec, x, w, b, eps);
    call.run(y)
}

/// y = x / sqrt(mean(x^2) + eps) * w over rows of `dim` elements; `w` is \[dim\] or none.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn rms_norm(
    on: impl Into<Executor>,
    x: &[f32],
    w: Option<&[f32]>,
    dim: usize,
    eps: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("rms_norm", on, x, dim)?;
    let (x, w) = (call.tensor("x", x, dim)?, w.map(|w| call.vector("w", w, dim)).transpose()?);
    let y = ops::rms_norm(&mut call.rec, x, w, eps);
    call.run(y)
}

/// y[t, n] = sum_k w[n, k] x[t, k]; `x` has rows of `w.cols` elements, y has rows of `w.rows`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Format`] for a type that kernels do not read, and errors of the
/// executor.
pub fn matmul(on: impl Into<Executor>, x: &[f32], w: Matrix<'_>) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("matmul", on, x, w.cols)?;
    let (x, w) = (call.tensor("x", x, w.cols)?, call.matrix("w", w)?);
    let y = ops::matmul(&mut call.rec, w, x);
    call.run(y)
}

/// The rows of `table` with these indices, in f32.
///
/// # Errors
/// [`Error::Argument`] for an index outside the table, [`Error::Shape`], [`Error::Format`], and
/// errors of the executor.
pub fn embed(on: impl Into<Executor>, table: Matrix<'_>, ids: &[u32]) -> Result<Vec<f32>, Error> {
    if ids.iter().any(|&id| id as usize >= table.rows) {
        return Err(argument("embed", "an id is past the end of the table"));
    }
    let mut call = Call::new("embed", on, ids.len(), &[StateKind::Tokens])?;
    let table = call.matrix("table", table)?;
    let tokens = call.rec.state(0);
    let mut states = call.states(ids.len())?;
    states.write_tokens(tokens, 0, 0, ids);
    let y = ops::embed(&mut call.rec, table, tokens);
    call.run_in(&mut states, Some(y)).map(bytemuck::cast_vec)
}

/// Softmax over rows of `dim` elements. Each row must have a finite element.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn softmax(on: impl Into<Executor>, x: &[f32], dim: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("softmax", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let y = ops::softmax(&mut call.rec, x);
    call.run(y)
}

/// Logarithm of the softmax over rows of `dim` elements. Each row must have a finite element.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn log_softmax(on: impl Into<Executor>, x: &[f32], dim: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("log_softmax", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let y = ops::log_softmax(&mut call.rec, x);
    call.run(y)
}

/// y = a + b; a shorter `b` is added to every row of its length.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn add(on: impl Into<Executor>, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("add", on, a, b.len())?;
    let (a, b) = (call.tensor("a", a, b.len())?, call.vector("b", b, b.len())?);
    let y = ops::add_bias(&mut call.rec, a, b);
    call.run(y)
}

/// y = a * b; a shorter `b` is multiplied with every row of its length.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn mul(on: impl Into<Executor>, a: &[f32], b: &[f32]) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("mul", on, a, b.len())?;
    let (a, b) = (call.tensor("a", a, b.len())?, call.vector("b", b, b.len())?);
    let y = ops::mul_row(&mut call.rec, a, b);
    call.run(y)
}

/// y = x * s.
///
/// # Errors
/// Errors of the executor.
pub fn scale(on: impl Into<Executor>, x: &[f32], s: f32) -> Result<Vec<f32>, Error> {
    Call::each("scale", on, x, |rec, x| ops::scale(rec, x, s))
}

/// y = cap * tanh(x / cap).
///
/// # Errors
/// [`Error::Argument`] for a cap that is not above zero, and errors of the executor.
pub fn softcap(on: impl Into<Executor>, x: &[f32], cap: f32) -> Result<Vec<f32>, Error> {
    if cap.is_nan() || cap <= 0.0 {
        return Err(argument("softcap", "the cap is not above zero"));
    }
    Call::each("softcap", on, x, |rec, x| ops::softcap(rec, x, cap))
}

/// y = x / (1 + exp(-x)).
///
/// # Errors
/// Errors of the executor.
pub fn silu(on: impl Into<Executor>, x: &[f32]) -> Result<Vec<f32>, Error> {
    Call::each("silu", on, x, ops::silu)
}

/// y = max(x, 0).
///
/// # Errors
/// Errors of the executor.
pub fn relu(on: impl Into<Executor>, x: &[f32]) -> Result<Vec<f32>, Error> {
    Call::each("relu", on, x, ops::relu)
}

/// The tanh form of the Gaussian error linear unit.
///
/// # Errors
/// Errors of the executor.
pub fn gelu(on: impl Into<Executor>, x: &[f32]) -> Result<Vec<f32>, Error> {
    Call::each("gelu", on, x, ops::gelu)
}

/// y = silu(gate) * up.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn swiglu(on: impl Into<Executor>, gate: &[f32], up: &[f32]) -> Result<Vec<f32>, Error> {
    Call::pair("swiglu", on, [("gate", gate), ("up", up)], ops::swiglu)
}

/// y = gelu(gate) * up.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn geglu(on: impl Into<Executor>, gate: &[f32], up: &[f32]) -> Result<Vec<f32>, Error> {
    Call::pair("geglu", on, [("gate", gate), ("up", up)], ops::geglu)
}

/// y = max(x - (mean + multiplier * deviation), 0) over rows of `dim` elements, with the biased
/// standard deviation.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn gaussian_top_k(on: impl Into<Executor>, x: &[f32], dim: usize, multiplier: f32) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("gaussian_top_k", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let y = ops::gaussian_top_k(&mut call.rec, x, multiplier);
    call.run(y)
}

/// Scales every row of `dim` elements of `x` to the root mean square of the same row of `like`.
/// `least` is the smallest mean square that is divided by.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn match_rms(on: impl Into<Executor>, x: &[f32], like: &[f32], dim: usize, least: f32) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("match_rms", on, x, dim)?;
    let (x, like) = (call.tensor("x", x, dim)?, call.tensor("like", like, dim)?);
    let y = ops::match_rms(&mut call.rec, x, like, least);
    call.run(y)
}

/// y\[t\] = base\[t\] + sum_j (c[t, j] + shift) * x_j\[t\] over rows of `dim` elements. `c` has one
/// column per tensor in `x`.
///
/// # Errors
/// [`Error::Argument`] unless there are one to four tensors, [`Error::Shape`], and errors of the
/// executor.
pub fn add_weighted(
    on: impl Into<Executor>,
    base: &[f32],
    x: &[&[f32]],
    c: &[f32],
    dim: usize,
    shift: f32,
) -> Result<Vec<f32>, Error> {
    if !(1..=crate::elementwise::add_weighted::MOST).contains(&x.len()) {
        return Err(argument("add_weighted", "the number of tensors is outside 1..=4"));
    }
    let mut call = Call::rows("add_weighted", on, base, dim)?;
    let (base, c) = (call.tensor("base", base, dim)?, call.tensor("c", c, x.len())?);
    let x = x.iter().map(|x| call.tensor("x", x, dim)).collect::<Result<Vec<_>, _>>()?;
    let y = ops::add_weighted(&mut call.rec, base, &x, ops::RowWeights { c, first: 0, shift });
    call.run(y)
}

/// Rotates the pairs (i, i + table.dim / 2) of every head of `x` [positions, heads, head_dim].
///
/// # Errors
/// [`Error::Shape`], [`Error::Argument`] for a table that does not fit the heads, and errors of the
/// executor.
pub fn rope(
    on: impl Into<Executor>,
    x: &[f32],
    positions: &[u32],
    heads: usize,
    table: &RopeTable,
) -> Result<Vec<f32>, Error> {
    let (mut call, x, rows) = rotation("rope", on, ("x", x), positions, heads, table)?;
    let y = ops::rope(&mut call.rec, x, rows);
    call.run(y)
}

/// Index of the first largest element of every row of `dim`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn argmax(on: impl Into<Executor>, x: &[f32], dim: usize) -> Result<Vec<u32>, Error> {
    let mut call = Call::rows("argmax", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let y = ops::argmax(&mut call.rec, x);
    call.words(y)
}

/// The `k` largest elements of every row of `dim`, with their indices, largest first. See
/// [`ops::top_k()`] for rows with fewer elements.
///
/// # Errors
/// [`Error::Argument`] for a `k` outside 1..=[`ops::MAX_K`], [`Error::Shape`], and errors of
/// the executor.
pub fn top_k(on: impl Into<Executor>, x: &[f32], dim: usize, k: u32) -> Result<Vec<Vec<(u32, f32)>>, Error> {
    if !(1..=crate::sampling::top_k::MAX_K).contains(&k) {
        return Err(argument("top_k", "k is outside 1..=256"));
    }
    let mut call = Call::rows("top_k", on, x, dim)?;
    let x = call.tensor("x", x, dim)?;
    let y = ops::top_k(&mut call.rec, x, k);
    let rows = call.words(y)?;
    let pairs =
        |row: &[u32]| row[k as usize..].iter().zip(row).map(|(id, value)| (*id, f32::from_bits(*value))).collect();
    Ok(rows.chunks_exact(2 * k as usize).map(pairs).collect())
}

/// y = softmax(scale q k^T) v with `q` [T, heads, dim], `k` and `v` [S, kv_heads, dim], and S >= T.
/// The queries are at the last T of the S positions.
///
/// # Errors
/// [`Error::Shape`], [`Error::Argument`] for heads that do not fit, and errors of the executor.
pub fn attention(on: impl Into<Executor>, q: &[f32], k: &[f32], v: &[f32], heads: Heads) -> Result<Vec<f32>, Error> {
    heads.check("attention")?;
    let Heads { heads, kv_heads, dim, attend } = heads;
    let (on, width) = (on.into(), kv_heads * dim);
    let kinds = [StateKind::kv(KvType::F32, width as u32); 2];
    let mut keys = Call::rows_in("attention", on.clone(), k, width, &kinds)?;
    let mut queries = Call::rows_in("attention", on, q, heads * dim, &kinds)?;
    let (s, t) = (k.len() / width, q.len() / (heads * dim));
    if t > s {
        return Err(argument("attention", "there are more queries than keys"));
    }
    let (k, v) =
        (keys.tensor("k", k, width)?.heads(kv_heads as u32), keys.tensor("v", v, width)?.heads(kv_heads as u32));
    let state = KvState::new(keys.rec.state(0), keys.rec.state(1));
    ops::kv_append(&mut keys.rec, state, k, v);
    let mut states = keys.states(s)?;
    keys.run_in(&mut states, None)?;
    queries.input.positions = (s - t..s).map(|p| p as u32).collect();
    if attend.mask == Mask::Bidirectional {
        queries.input.ends = vec![s as u32; t];
    }
    let q = queries.tensor("q", q, heads * dim)?.heads(heads as u32);
    let y = ops::attention(&mut queries.rec, q, state, kv_heads as u32, attend);
    queries.run_in(&mut states, Some(y)).map(bytemuck::cast_vec)
}
