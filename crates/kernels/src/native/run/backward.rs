//! Derivatives on slices: from the derivative `dy` by the result of an operation, the derivatives
//! by its operands.

use super::call::{Call, argument, rotation};
use super::operands::{Heads, Matrix};
use crate::attention::attention_lse::Attended;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::graph::record::RopeTable;
use crate::graph::tensor::Input;
use crate::ops::{self, backward};
use cpu_ref::Mask;

/// dx\[t\] = dy\[t\] w, the derivative of [`matmul`](super::matmul) by its rows; `dy` has rows of
/// `w.rows` elements, dx has rows of `w.cols`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Format`] for a type that kernels do not read, and errors of the
/// executor.
pub fn matmul_input(on: impl Into<Executor>, dy: &[f32], w: Matrix<'_>) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("matmul_input", on, dy, w.rows)?;
    let (dy, w) = (call.tensor("dy", dy, w.rows)?, call.matrix("w", w)?);
    let dx = backward::matmul_input(&mut call.rec, w, dy);
    call.run(dx)
}

/// g = dy^T x, the derivative of [`matmul`](super::matmul) by its weight; `dy` has rows of `n`
/// elements, `x` has as many rows of `k`, g is [n, k].
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn matmul_weight(on: impl Into<Executor>, dy: &[f32], x: &[f32], n: usize, k: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::sums("matmul_weight", on, dy, n, n * k)?;
    let (dy, x) = (call.tensor("dy", dy, n)?, call.tensor("x", x, k)?);
    let g = call.rec.state(0);
    backward::matmul_weight(&mut call.rec, dy, x, g);
    call.sum()
}

/// The derivative of [`rms_norm`](super::rms_norm) by its rows.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn rms_norm_backward(
    on: impl Into<Executor>,
    x: &[f32],
    w: Option<&[f32]>,
    dy: &[f32],
    dim: usize,
    eps: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("rms_norm_backward", on, x, dim)?;
    let (x, dy) = (call.tensor("x", x, dim)?, call.tensor("dy", dy, dim)?);
    let w = w.map(|w| call.vector("w", w, dim)).transpose()?;
    let dx = backward::rms_norm_backward(&mut call.rec, &ops::RmsNorm { x, w, eps, y: dy }, dy);
    call.run(dx)
}

/// The derivative of [`layer_norm`](super::layer_norm) by its rows.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn layer_norm_backward(
    on: impl Into<Executor>,
    x: &[f32],
    w: Option<&[f32]>,
    dy: &[f32],
    dim: usize,
    eps: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("layer_norm_backward", on, x, dim)?;
    let (x, dy) = (call.tensor("x", x, dim)?, call.tensor("dy", dy, dim)?);
    let w = w.map(|w| call.vector("w", w, dim)).transpose()?;
    let dx = backward::layer_norm_backward(&mut call.rec, &ops::LayerNorm { x, w, b: None, eps, y: dy }, dy);
    call.run(dx)
}

/// The derivative of [`rms_norm`](super::rms_norm) by its weight.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn rms_norm_weight_backward(
    on: impl Into<Executor>,
    x: &[f32],
    dy: &[f32],
    dim: usize,
    eps: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::sums("rms_norm_weight_backward", on, x, dim, dim)?;
    let (x, dy) = (call.tensor("x", x, dim)?, call.tensor("dy", dy, dim)?);
    let g = call.rec.state(0);
    backward::rms_norm_weight_backward(&mut call.rec, &ops::RmsNorm { x, w: None, eps, y: dy }, dy, g);
    call.sum()
}

/// The derivative of [`rope`](super::rope): `dy` [positions, heads, head_dim] rotated back.
///
/// # Errors
/// As [`rope`](super::rope).
pub fn rope_backward(
    on: impl Into<Executor>,
    dy: &[f32],
    positions: &[u32],
    heads: usize,
    table: &RopeTable,
) -> Result<Vec<f32>, Error> {
    let (mut call, dy, rows) = rotation("rope_backward", on, ("dy", dy), positions, heads, table)?;
    let dx = backward::rope_backward(&mut call.rec, dy, rows);
    call.run(dx)
}

/// The derivative of [`silu`](super::silu).
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn silu_backward(on: impl Into<Executor>, x: &[f32], dy: &[f32]) -> Result<Vec<f32>, Error> {
    Call::pair("silu_backward", on, [("x", x), ("dy", dy)], backward::silu_backward)
}

/// The derivative of [`relu`](super::relu).
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn relu_backward(on: impl Into<Executor>, x: &[f32], dy: &[f32]) -> Result<Vec<f32>, Error> {
    Call::pair("relu_backward", on, [("x", x), ("dy", dy)], backward::relu_backward)
}

/// The derivative of [`gelu`](super::gelu).
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn gelu_backward(on: impl Into<Executor>, x: &[f32], dy: &[f32]) -> Result<Vec<f32>, Error> {
    Call::pair("gelu_backward", on, [("x", x), ("dy", dy)], backward::gelu_backward)
}

/// The derivatives of [`swiglu`](super::swiglu) by `gate` and by `up`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn swiglu_backward(on: impl Into<Executor>, gate: &[f32], up: &[f32], dy: &[f32]) -> Result<[Vec<f32>; 2], Error> {
    let mut call = Call::rows("swiglu_backward", on, gate, gate.len())?;
    let [gate, up, dy] = call.tensors([("gate", gate), ("up", up), ("dy", dy)], gate.len())?;
    let results = backward::swiglu_backward(&mut call.rec, gate, up, dy);
    call.floats_of(results)
}

/// The derivatives of [`geglu`](super::geglu) by `gate` and by `up`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn geglu_backward(on: impl Into<Executor>, gate: &[f32], up: &[f32], dy: &[f32]) -> Result<[Vec<f32>; 2], Error> {
    let mut call = Call::rows("geglu_backward", on, gate, gate.len())?;
    let [gate, up, dy] = call.tensors([("gate", gate), ("up", up), ("dy", dy)], gate.len())?;
    let results = backward::geglu_backward(&mut call.rec, &ops::Geglu { gate, up, start: 0, y: dy }, dy);
    call.floats_of(results)
}

/// The derivative of [`softcap`](super::softcap), from its result `y`.
///
/// # Errors
/// [`Error::Argument`] for a cap that is not above zero, [`Error::Shape`], and errors of the
/// executor.
pub fn softcap_backward(on: impl Into<Executor>, y: &[f32], dy: &[f32], cap: f32) -> Result<Vec<f32>, Error> {
    if cap.is_nan() || cap <= 0.0 {
        return Err(argument("softcap_backward", "the cap is not above zero"));
    }
    let of = |rec: &mut _, y, dy| backward::softcap_backward(rec, &ops::Softcap { x: y, cap, y }, dy);
    Call::pair("softcap_backward", on, [("y", y), ("dy", dy)], of)
}

/// The derivative of [`softmax`](super::softmax) over rows of `dim` elements, from its result `y`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn softmax_backward(on: impl Into<Executor>, y: &[f32], dy: &[f32], dim: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("softmax_backward", on, y, dim)?;
    let [y, dy] = call.tensors([("y", y), ("dy", dy)], dim)?;
    let dx = backward::softmax_backward(&mut call.rec, y, dy);
    call.run(dx)
}

/// The derivative of [`log_softmax`](super::log_softmax) over rows of `dim` elements, from its
/// result `y`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn log_softmax_backward(on: impl Into<Executor>, y: &[f32], dy: &[f32], dim: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("log_softmax_backward", on, y, dim)?;
    let [y, dy] = call.tensors([("y", y), ("dy", dy)], dim)?;
    let dx = backward::log_softmax_backward(&mut call.rec, y, dy);
    call.run(dx)
}

/// The derivatives of rows times the sigmoid of one number, by the rows and by the numbers; `x` and
/// `dy` have rows of `dim` elements, `gate` one number for each.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn mul_sigmoid_backward(
    on: impl Into<Executor>,
    x: &[f32],
    gate: &[f32],
    dy: &[f32],
    dim: usize,
) -> Result<[Vec<f32>; 2], Error> {
    let mut call = Call::rows("mul_sigmoid_backward", on, x, dim)?;
    let ([x, dy], gate) = (call.tensors([("x", x), ("dy", dy)], dim)?, call.tensor("gate", gate, 1)?);
    let dx = ops::mul_sigmoid(&mut call.rec, dy, gate);
    let dgate = backward::mul_sigmoid_backward(&mut call.rec, x, gate, dy);
    call.floats_of([dx, dgate])
}

/// The derivatives of [`match_rms`](super::match_rms) by `x` and by `like`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn match_rms_backward(
    on: impl Into<Executor>,
    x: &[f32],
    like: &[f32],
    dy: &[f32],
    dim: usize,
    least: f32,
) -> Result<[Vec<f32>; 2], Error> {
    let mut call = Call::rows("match_rms_backward", on, x, dim)?;
    let [x, like, dy] = call.tensors([("x", x), ("like", like), ("dy", dy)], dim)?;
    let results = backward::match_rms_backward(&mut call.rec, &ops::MatchRms { x, like, least, y: dy }, dy);
    call.floats_of(results)
}

/// The derivative of [`gaussian_top_k`](super::gaussian_top_k), with its result `y`.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn gaussian_top_k_backward(
    on: impl Into<Executor>,
    x: &[f32],
    y: &[f32],
    dy: &[f32],
    dim: usize,
    multiplier: f32,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("gaussian_top_k_backward", on, x, dim)?;
    let [x, y, dy] = call.tensors([("x", x), ("y", y), ("dy", dy)], dim)?;
    let dx = backward::gaussian_top_k_backward(&mut call.rec, &ops::GaussianTopK { x, multiplier, y }, dy);
    call.run(dx)
}

/// The derivatives of [`add_weighted`](super::add_weighted): by each tensor of `x`, and by `c`. The
/// derivative by the base is `dy`.
///
/// # Errors
/// As [`add_weighted`](super::add_weighted).
pub fn add_weighted_backward(
    on: impl Into<Executor>,
    x: &[&[f32]],
    c: &[f32],
    dy: &[f32],
    dim: usize,
    shift: f32,
) -> Result<(Vec<Vec<f32>>, Vec<f32>), Error> {
    if !(1..=crate::elementwise::add_weighted::MOST).contains(&x.len()) {
        return Err(argument("add_weighted_backward", "the number of tensors is outside 1..=4"));
    }
    let mut call = Call::rows("add_weighted_backward", on, dy, dim)?;
    let (dy, c) = (call.tensor("dy", dy, dim)?, call.tensor("c", c, x.len())?);
    let x = x.iter().map(|x| call.tensor("x", x, dim)).collect::<Result<Vec<_>, _>>()?;
    let sum = ops::AddWeighted { base: dy, x, weights: ops::RowWeights { c, first: 0, shift }, y: dy };
    let mut results: Vec<_> =
        (0..sum.x.len()).map(|j| backward::add_weighted_backward(&mut call.rec, &sum, j, dy)).collect();
    results.push(backward::add_weighted_backward_c(&mut call.rec, &sum, dy));
    let mut all: Vec<Vec<f32>> = call.all(results)?.into_iter().map(bytemuck::cast_vec).collect();
    let dc = all.pop().unwrap_or_default();
    Ok((all, dc))
}

/// The sums of the columns of `a`, or of the products of `a` and `b`, over rows of `dim` elements:
/// the derivative of a bias, or of a factor of every row.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn column_sum(on: impl Into<Executor>, a: &[f32], b: Option<&[f32]>, dim: usize) -> Result<Vec<f32>, Error> {
    let mut call = Call::sums("column_sum", on, a, dim, dim)?;
    let (a, b) = (call.tensor("a", a, dim)?, b.map(|b| call.tensor("b", b, dim)).transpose()?);
    let g = call.rec.state(0);
    backward::column_sum(&mut call.rec, a, b, g);
    call.sum()
}

/// The derivatives of [`attention`](super::attention) with as many queries as keys, by `q`, `k` and
/// `v`.
///
/// # Errors
/// As [`attention`](super::attention).
pub fn attention_backward(
    on: impl Into<Executor>,
    [q, k, v, dy]: [&[f32]; 4],
    heads: Heads,
) -> Result<[Vec<f32>; 3], Error> {
    heads.check("attention_backward")?;
    let Heads { heads, kv_heads, dim, attend } = heads;
    let mut call = Call::rows("attention_backward", on, q, heads * dim)?;
    let [q, dy] = call.tensors([("q", q), ("dy", dy)], heads * dim)?.map(|t| t.heads(heads as u32));
    let [k, v] = call.tensors([("k", k), ("v", v)], kv_heads * dim)?.map(|t| t.heads(kv_heads as u32));
    // All rows are one document.
    let rows = call.input.positions.len();
    call.input.firsts = vec![0; rows];
    if attend.mask == Mask::Bidirectional {
        call.input.ends = vec![rows as u32; rows];
    }
    let (rec, kv_heads) = (&mut call.rec, kv_heads as u32);
    let [positions, firsts, spans, step_rows] =
        [Input::Numbers, Input::Firsts, Input::Spans, Input::Rows].map(|input| rec.input(input));
    let ends = if attend.mask == Mask::Bidirectional { rec.input(Input::Ends) } else { positions };
    let y = rec.make(q.shape);
    rec.push(ops::Attention {
        q,
        keys: crate::attention::attention::Keys::Step { k, v, firsts },
        kv_heads,
        attend,
        positions,
        ends,
        y,
    });
    let of = Attended { q, k, v, kv_heads, attend, spans, step_rows };
    let lse = backward::attention_lse(rec, of);
    let stats = backward::attention_delta(rec, y, dy, lse);
    let dq = backward::attention_backward_q(rec, of, dy, stats);
    let [dk, dv] = backward::attention_backward_kv(rec, of, dy, stats);
    call.floats_of([dq, dk, dv])
}
