//! The operations of Gemma 3n: weighted sums of streams, their sizes, and sparse activations.

use crate::tape::Tape;
use kernels::ops::backward::{
    add_weighted_backward, add_weighted_backward_c, gaussian_top_k_backward, match_rms_backward,
};
use kernels::ops::{AddWeighted, GaussianTopK, MatchRms};

pub fn add_weighted(tape: &mut Tape<'_>, op: &AddWeighted) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.base, |_| dy);
    for (j, &x) in op.x.iter().enumerate() {
        tape.add(x, |rec| add_weighted_backward(rec, op, j, dy));
    }
    if tape.wants(op.weights.c) {
        let dc = add_weighted_backward_c(tape.rec, op, dy);
        tape.add_columns(op.weights.c, op.weights.first, dc);
    }
}

pub fn match_rms(tape: &mut Tape<'_>, op: &MatchRms) {
    let Some(dy) = tape.of(op.y) else { return };
    if tape.wants(op.x) || tape.wants(op.like) {
        let [dx, dlike] = match_rms_backward(tape.rec, op, dy);
        tape.add(op.x, |_| dx);
        tape.add(op.like, |_| dlike);
    }
}

pub fn gaussian_top_k(tape: &mut Tape<'_>, op: &GaussianTopK) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| gaussian_top_k_backward(rec, op, dy));
}
