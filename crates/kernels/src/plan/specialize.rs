//! Turns params into constants. A kernel that is compiled for its shapes has no code for others,
//! and it computes addresses without waiting for a uniform.

use super::Placed;
use crate::kernel::compose::Shader;
use crate::kernel::{Kernel, ROWS_APART, Scalar};
use std::collections::HashMap;

/// Largest number of rows of a plan all of whose params become constants. Most kernels of many rows
/// gain little, because they take long, and the last chunk of a prompt would need pipelines of its
/// own. A kernel that gains names its params that most plans of a model share
/// ([`Kernel::constants`]).
const MOST_ROWS: u32 = 64;

/// Largest number of different params with which a shader is specialized: each needs a pipeline of
/// its own.
const MOST: usize = 4;

/// Sets the params of each kernel of a plan of `rows` rows as constants, except params that are
/// decided when the plan is bound. `sequences` is the number that the states hold, 0 if unknown.
/// With a single sequence, its rows begin at 0.
pub fn specialize(steps: &mut [Placed], rows: u32, sequences: u32) {
    let all = rows <= MOST_ROWS;
    let words: Vec<_> = steps
        .iter()
        .map(|placed| words(placed.dispatch.variant.kernel, &placed.dispatch.params, all, sequences))
        .collect();
    let mut met: HashMap<Shader, Vec<&[Option<u32>]>> = HashMap::new();
    for (placed, words) in steps.iter().zip(&words) {
        let known = met.entry(placed.shader.clone()).or_default();
        if !known.contains(&words.as_slice()) {
            known.push(words);
        }
    }
    let few: Vec<bool> = steps.iter().map(|placed| met[&placed.shader].len() <= MOST).collect();
    drop(met);
    for ((placed, words), few) in steps.iter_mut().zip(words).zip(few) {
        let any = words.iter().any(Option::is_some);
        if few && any && finite(placed.dispatch.variant.kernel, &words) {
            placed.shader.given = words;
        }
    }
}

/// A kernel's params by field, or only its constants; `None` for params that are decided when the
/// plan is bound.
fn words(kernel: &Kernel, params: &[u8], all: bool, sequences: u32) -> Vec<Option<u32>> {
    let word = |at: usize| u32::from_le_bytes([params[at], params[at + 1], params[at + 2], params[at + 3]]);
    let of = |(n, (field, _)): (usize, &(&str, Scalar))| match *field {
        field if !all && !kernel.constants.contains(&field) => None,
        ROWS_APART if sequences == 1 => Some(0),
        _ if kernel.bound_late().is_some_and(|late| late.0 == *field) => None,
        _ => Some(word(4 * n)),
    };
    kernel.params.iter().enumerate().map(of).collect()
}

/// Whether all floats are finite: WGSL has no literal for other numbers.
fn finite(kernel: &Kernel, words: &[Option<u32>]) -> bool {
    kernel
        .params
        .iter()
        .zip(words)
        .all(|((_, scalar), word)| *scalar == Scalar::U32 || word.is_none_or(|word| f32::from_bits(word).is_finite()))
}
