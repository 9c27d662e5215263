//! Routed experts on slices.

use super::Matrix;
use super::call::{Call, argument};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::ops;

/// For every row of `experts` logits, the `k` experts with the largest logits, largest first, and
/// their weights. A weight is the softmax over all experts, or over the chosen ones if `normalize`.
///
/// # Errors
/// [`Error::Argument`] for more than [`ops::route::MAX_EXPERTS`] experts, or for a `k` outside
/// 1..=experts, [`Error::Shape`], and errors of the executor.
pub fn route(on: impl Into<Executor>, logits: &[f32], experts: usize, k: u32, normalize: bool) -> Result<Vec<Vec<(u32, f32)>>, Error> {
    if experts > ops::route::MAX_EXPERTS as usize || k == 0 || k as usize > experts {
        return Err(argument("route", "k is outside 1..=experts, or there are more than 1024 experts"));
    }
    let mut call = Call::rows("route", on, logits, experts)?;
    let logits = call.tensor("logits", logits, experts)?;
    let routes = ops::route(&mut call.rec, logits, k, normalize, None);
    let [ids, weights] = call.words_of([routes.experts, routes.weights])?;
    let pairs: Vec<_> = ids.into_iter().zip(weights.into_iter().map(f32::from_bits)).collect();
    Ok(pairs.chunks_exact(k as usize).map(<[_]>::to_vec).collect())
}

/// y[t, j, n] = sum_k w[choices[t, j], n, k] x[t, k]. `x` has rows of `w.cols` elements. `w` has
/// the matrices of all experts one after the other. `choices` has the same number of experts for
/// every row of `x`.
///
/// # Errors
/// [`Error::Argument`] for a choice outside 0..experts, or if `experts` does not divide `w.rows`,
/// [`Error::Shape`], [`Error::Format`] for a type that kernels do not read, and errors of the
/// executor.
pub fn matmul_experts(on: impl Into<Executor>, x: &[f32], w: Matrix<'_>, experts: u32, choices: &[u32]) -> Result<Vec<f32>, Error> {
    const NAME: &str = "matmul_experts";
    if experts == 0 || experts > ops::route::MAX_EXPERTS || !w.rows.is_multiple_of(experts as usize) {
        return Err(argument(NAME, "the number of experts is outside 1..=1024, or does not divide the rows of the matrix"));
    }
    if choices.iter().any(|&c| c >= experts) {
        return Err(argument(NAME, "a choice is not below the number of experts"));
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
