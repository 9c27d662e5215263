//! Routed experts on slices.

use super::call::{Call, argument};
use super::operands::Matrix;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::ops::{self, backward};

/// For every row of `experts` logits, the `k` experts with the largest logits, largest first, and
/// their weights. A weight is the softmax over all experts, or over the chosen ones if `normalize`.
///
/// # Errors
/// [`Error::Argument`] for more than [`crate::ops::MAX_EXPERTS`] experts, or for a `k` outside
/// 1..=experts, [`Error::Shape`], and errors of the executor.
pub fn route(
    on: impl Into<Executor>,
    logits: &[f32],
    experts: usize,
    k: u32,
    normalize: bool,
) -> Result<Vec<Vec<(u32, f32)>>, Error> {
    if experts > crate::experts::route::MAX_EXPERTS as usize || k == 0 || k as usize > experts {
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
pub fn matmul_experts(
    on: impl Into<Executor>,
    x: &[f32],
    w: Matrix<'_>,
    experts: u32,
    choices: &[u32],
) -> Result<Vec<f32>, Error> {
    const NAME: &str = "matmul_experts";
    if experts == 0 || experts > crate::experts::route::MAX_EXPERTS || !w.rows.is_multiple_of(experts as usize) {
        return Err(argument(
            NAME,
            "the number of experts is outside 1..=1024, or does not divide the rows of the matrix",
        ));
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
    let routes = crate::experts::route::Routes::of(&mut call.rec, ids, ids, experts);
    let y = ops::matmul_experts(&mut call.rec, w, 0..each as u32, x, &routes);
    call.run(y)
}

/// The derivative of the weights of [`route`] by the logits, while the choice stays: `choices` and
/// the derivatives `dweights` by their weights have `k` elements for each row of `experts` logits.
///
/// # Errors
/// [`Error::Argument`] for more than [`crate::ops::MAX_EXPERTS`] experts, for a `k` outside
/// 1..=experts, or for a choice outside 0..experts, [`Error::Shape`], and errors of the executor.
pub fn route_backward(
    on: impl Into<Executor>,
    logits: &[f32],
    experts: usize,
    choices: &[u32],
    dweights: &[f32],
    k: u32,
    normalize: bool,
) -> Result<Vec<f32>, Error> {
    const NAME: &str = "route_backward";
    if experts > crate::experts::route::MAX_EXPERTS as usize || k == 0 || k as usize > experts {
        return Err(argument(NAME, "k is outside 1..=experts, or there are more than 1024 experts"));
    }
    if choices.iter().any(|&c| c as usize >= experts) {
        return Err(argument(NAME, "a choice is not below the number of experts"));
    }
    let mut call = Call::rows(NAME, on, logits, experts)?;
    let bits: Vec<f32> = choices.iter().copied().map(f32::from_bits).collect();
    let logits = call.tensor("logits", logits, experts)?;
    let [chosen, dweights] = call.tensors([("choices", &bits), ("dweights", dweights)], k as usize)?;
    let of = ops::Route { logits, normalize, scale: None, experts: chosen, weights: dweights };
    let dlogits = backward::route_backward(&mut call.rec, &of, dweights);
    call.run(dlogits)
}

/// The derivative of [`matmul_experts`] by the rows of `x`: `dy` has `w.rows / experts` elements
/// for each of `choices`, of which there are `k` for each row.
///
/// # Errors
/// As [`matmul_experts`].
pub fn matmul_experts_input(
    on: impl Into<Executor>,
    dy: &[f32],
    w: Matrix<'_>,
    experts: u32,
    choices: &[u32],
    k: usize,
) -> Result<Vec<f32>, Error> {
    const NAME: &str = "matmul_experts_input";
    if experts == 0
        || experts > crate::experts::route::MAX_EXPERTS
        || !w.rows.is_multiple_of(experts as usize)
        || k == 0
    {
        return Err(argument(
            NAME,
            "the number of experts is outside 1..=1024 or does not divide the rows of the matrix, or k is 0",
        ));
    }
    if choices.iter().any(|&c| c >= experts) {
        return Err(argument(NAME, "a choice is not below the number of experts"));
    }
    let each = w.rows / experts as usize;
    let mut call = Call::rows(NAME, on, dy, k * each)?;
    let (dy, w) = (call.tensor("dy", dy, k * each)?.heads(k as u32), call.matrix("w", w)?);
    let bits: Vec<f32> = choices.iter().copied().map(f32::from_bits).collect();
    let ids = call.tensor("choices", &bits, k)?;
    let routes = crate::experts::route::Routes::of(&mut call.rec, ids, ids, experts);
    let product = ops::MatmulExperts { w, first: 0, x: dy, routes, y: dy };
    let slots = backward::matmul_experts_input(&mut call.rec, &product, dy);
    let dx = backward::sum_slots(&mut call.rec, slots);
    call.run(dx)
}

/// The derivatives of the weighted sum of `k` rows of `dim` elements, by the rows `x` and by the
/// weights; `dy` has one row of `dim` elements for each `k` of `x`.
///
/// # Errors
/// [`Error::Argument`] for a `k` of 0, [`Error::Shape`], and errors of the executor.
pub fn combine_experts_backward(
    on: impl Into<Executor>,
    x: &[f32],
    weights: &[f32],
    dy: &[f32],
    k: usize,
    dim: usize,
) -> Result<[Vec<f32>; 2], Error> {
    const NAME: &str = "combine_experts_backward";
    if k == 0 {
        return Err(argument(NAME, "k is 0"));
    }
    let mut call = Call::rows(NAME, on, dy, dim)?;
    let (dy, x) = (call.tensor("dy", dy, dim)?, call.tensor("x", x, k * dim)?.heads(k as u32));
    let weights = call.tensor("weights", weights, k)?;
    let results = backward::combine_experts_backward(&mut call.rec, &ops::CombineExperts { x, weights, y: dy }, dy);
    call.floats_of(results)
}
