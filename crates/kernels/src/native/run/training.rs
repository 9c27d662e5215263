//! The loss, sums of gradients, and the step of an optimizer on slices.

use super::call::{Call, argument, read_state, write_state};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::graph::tensor::{Input, StateKind, Weight};
use crate::matmul::embed::{Embed, Ids};
use crate::ops::{self, backward};
use crate::training::adamw::Moments;
use cpu_ref::AdamwSpec;
use cpu_ref::Adapted;
use gguf::GgmlType;

/// The loss of every row of `vocabulary` logits, and the logarithm of the sum of its exponentials.
/// A target of `vocabulary` or more has the loss 0.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn cross_entropy(
    on: impl Into<Executor>,
    logits: &[f32],
    targets: &[u32],
    vocabulary: usize,
) -> Result<Vec<[f32; 2]>, Error> {
    let mut call = Call::rows("cross_entropy", on, logits, vocabulary)?;
    let logits = call.tensor("logits", logits, vocabulary)?;
    let targets = call.ids("targets", targets)?;
    let y = backward::cross_entropy(&mut call.rec, logits, targets);
    Ok(call.run(y)?.chunks_exact(2).map(|row| [row[0], row[1]]).collect())
}

/// The derivative of the sum of the losses of [`cross_entropy`], each times its weight, by the
/// logits.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn cross_entropy_backward(
    on: impl Into<Executor>,
    logits: &[f32],
    targets: &[u32],
    weights: &[f32],
    vocabulary: usize,
) -> Result<Vec<f32>, Error> {
    let mut call = Call::rows("cross_entropy_backward", on, logits, vocabulary)?;
    let logits = call.tensor("logits", logits, vocabulary)?;
    let (targets, weights) = (call.ids("targets", targets)?, call.tensor("weights", weights, 1)?);
    let y = backward::cross_entropy(&mut call.rec, logits, targets);
    let d = backward::cross_entropy_backward(&mut call.rec, &backward::CrossEntropy { logits, targets, y }, weights);
    call.run(d)
}

/// The derivative of a choice of rows, of `count` rows in all: `dy` has a row of `dim` elements for
/// each of `rows`, which rise.
///
/// # Errors
/// [`Error::Argument`] for rows that do not rise or are not below `count`, [`Error::Shape`], and
/// errors of the executor.
pub fn gather_rows_backward(
    on: impl Into<Executor>,
    dy: &[f32],
    rows: &[u32],
    count: usize,
    dim: usize,
) -> Result<Vec<f32>, Error> {
    const NAME: &str = "gather_rows_backward";
    if !rows.is_sorted() || rows.last().is_some_and(|&row| row as usize >= count) {
        return Err(argument(NAME, "the rows do not rise, or are not below their number"));
    }
    let mut call = Call::new(NAME, on, count, &[])?.choosing(rows)?;
    let dy = call.chosen("dy", dy, dim)?;
    let dx = backward::gather_rows_backward(&mut call.rec, dy);
    call.run(dx)
}

/// The derivative of [`embed`](super::embed()) by its table [vocabulary, dim]: `dy` has a row of
/// `dim` elements for each of `ids`.
///
/// # Errors
/// [`Error::Argument`] for an id outside the table, [`Error::Shape`], and errors of the executor.
pub fn embed_backward(
    on: impl Into<Executor>,
    dy: &[f32],
    ids: &[u32],
    vocabulary: usize,
    dim: usize,
) -> Result<Vec<f32>, Error> {
    const NAME: &str = "embed_backward";
    if ids.iter().any(|&id| id as usize >= vocabulary) {
        return Err(argument(NAME, "an id is past the end of the table"));
    }
    let mut call = Call::sums(NAME, on, dy, dim, vocabulary * dim)?;
    let dy = call.tensor("dy", dy, dim)?;
    let (ids, g) = (call.ids("ids", ids)?, call.rec.state(0));
    // Nothing reads the table.
    let table = Weight::loaded(0, GgmlType::F32, vocabulary as u32, dim as u32);
    let numbers = call.rec.input(Input::Numbers);
    backward::embed_backward(
        &mut call.rec,
        &Embed { table, ids: Ids::Step { ids, numbers }, scale: 1.0, y: dy },
        dy,
        g,
    );
    call.sum()
}

/// The sum of the squares of all elements.
///
/// # Errors
/// Errors of the executor.
pub fn sum_squares(on: impl Into<Executor>, x: &[f32]) -> Result<f32, Error> {
    if x.is_empty() {
        return Ok(0.0);
    }
    let mut call = Call::sums("sum_squares", on, &[0.0], 1, x.len())?;
    let mut states = call.states(1)?;
    write_state(&mut states, 0, x);
    let state = call.rec.state(0);
    let y = backward::sum_squares(&mut call.rec, &[state]);
    Ok(f32::from_bits(call.run_in(&mut states, Some(y))?[0]))
}

/// Step `t`, the first of which is 1, of AdamW: changes parameters and moments in place.
/// `squares` is the sum of the squares of all gradients. Gradients of a norm above `most` are
/// scaled down to it.
///
/// # Errors
/// [`Error::Shape`], and errors of the executor.
pub fn adamw(
    on: impl Into<Executor>,
    spec: AdamwSpec,
    (rate, most, t): (f32, f32, u32),
    squares: f32,
    gradient: &[f32],
    to: Adapted<'_>,
) -> Result<(), Error> {
    let Adapted { p, m, v } = to;
    for (name, found) in [("p", p.len()), ("m", m.len()), ("v", v.len())] {
        if found != gradient.len() {
            return Err(Error::Shape { operation: "adamw", name, expected: gradient.len(), found });
        }
    }
    if gradient.is_empty() {
        return Ok(());
    }
    let mut call = Call::new("adamw", on, 1, &[StateKind::Words(gradient.len() as u32); 4])?;
    let mut states = call.states(1)?;
    for (n, words) in [&*p, gradient, &*m, &*v].into_iter().enumerate() {
        write_state(&mut states, n, words);
    }
    let of = [0, 1, 2, 3].map(|n| call.rec.state(n));
    let moments = Moments { p: of[0], gradient: of[1], m: of[2], v: of[3] };
    let squares = call.given(&[squares]);
    let step = call.given(&backward::adamw_step(&spec, rate, most, t));
    backward::adamw(&mut call.rec, spec, moments, squares, step);
    call.run_in(&mut states, None)?;
    for (n, to) in [(0, p), (2, m), (3, v)] {
        to.copy_from_slice(&read_state(&states, n)?);
    }
    Ok(())
}

/// y = x / (1 - rate), or 0 with the probability `rate`: the words of `key` and `tensor` decide
/// together with the index of an element. The derivative with an equal `key` and `tensor` drops the
/// elements that y drops.
///
/// # Errors
/// [`Error::Argument`] for a rate outside 0..1, and errors of the executor.
pub fn dropout(on: impl Into<Executor>, x: &[f32], key: [u32; 2], tensor: u32, rate: f32) -> Result<Vec<f32>, Error> {
    if !(0.0..1.0).contains(&rate) {
        return Err(argument("dropout", "the rate is outside 0..1"));
    }
    let mut call = Call::new("dropout", on, 1, &[])?;
    let (x, key) = (call.tensor("x", x, x.len())?, call.given(&key.map(f32::from_bits)));
    let y = ops::dropout(&mut call.rec, x, key, tensor, rate);
    call.run(y)
}
