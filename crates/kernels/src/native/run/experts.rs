//! Routed experts on slices.

use super::Matrix;
use super::call::{Call, argument};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::ops;

/// The `k` experts of the largest of every row of `experts` logits, largest first, with their weights: shares of the softmax
/// over all experts, or over the chosen.
///
/// # Errors
/// [`Error::Argument`] for more experts than [`ops::route::MAX_EXPERTS`] or a `k` beyond them, [`Error::Shape`] and those of the
/// executor.
pub fn route(on: impl Into<Executor>, logits: &[f32], experts: usize, k: u32, normalize: bool) -> Result<Vec<Vec<(u32, f32)>>, Error> {
    if experts > ops::route::MAX_EXPERTS as usize || k == 0 || k as usize > experts {
        return Err(argument("route", "k is outside 1..=experts, or the experts are more than 1024"));
    }
    let mut call = Call::rows("route", on, logits, experts)?;
    let logits = call.tensor("logits", logits, experts)?;
    let routes = ops::route(&mut call.rec, logits, k, normalize, None);
    let [ids, weights] = call.words_of([routes.experts, routes.weights])?;
    let pairs: Vec<_> = ids.into_iter().zip(weights.into_iter().map(f32::from_bits)).collect();
    Ok(pairs.chunks_exact(k as usize).map(<[_]>::to_vec).collect())
}

/// y[t, j, n] = sum_k w[choices[t, j], n, k] x[t, k]: `x` rows of `w.cols` elements, `w` the matrices of `experts` experts one after
/// the other, `choices` as many per row of `x`.
///
/// # Errors
/// [`Error::Argument`] for choices that are no experts or `w.rows` that they do not divide, [`Error::Shape`], [`Error::Format`] for a
/// type that kernels do not read, and those of the executor.
pub fn matmul_experts(on: impl Into<Executor>, x: &[f32], w: Matrix<'_>, experts: u32, choices: &[u32]) -> Result<Vec<f32>, Error> {
    const NAME: &str = "matmul_experts";
    if experts == 0 || experts > ops::route::MAX_EXPERTS || !w.rows.is_multiple_of(experts as usize) {
        return Err(argument(NAME, "the experts are outside 1..=1024 or do not divide the rows of the matrix"));
    }
    if choices.iter().any(|&c| c >= experts) {
        return Err(argument(NAME, "a choice is no expert"));
    }
    let each = w.rows / experts as usize;
    let mut call = Call::rows(NAME, on, x, w.cols)?;
    let rows = call.rec.capacity().step;
    let (x, w) = (call.tensor("x", x, w.cols)?, call.matrix("w", w)?);
    if rows == 0 {
        return Ok(vec![]);
    }
    let k = choices.len() / rows as usize;
    if k == 0 {
        return Err(argument(NAME, "a row of x has no choice"));
    }
    let bits: Vec<f32> = choices.iter().copied().map(f32::from_bits).collect();
    let ids = call.tensor("choices", &bits, k)?;
    let routes = ops::Routes::of(&mut call.rec, ids, ids, experts);
    let y = ops::matmul_experts(&mut call.rec, w, 0..each as u32, x, &routes);
    call.run(y)
}
