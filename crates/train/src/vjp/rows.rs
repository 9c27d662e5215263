//! Look-ups, norms, rotations and the choice of rows.

use crate::tape::Tape;
use kernels::ops::backward::{
    column_sum, embed_backward, gather_rows_backward, layer_norm_backward, log_softmax_backward, rms_norm_backward,
    rms_norm_weight_backward, rope_backward, softmax_backward,
};
use kernels::ops::{self, Embed, GatherRows, LayerNorm, LogSoftmax, RmsNorm, Rope, Softmax};

/// Ids lead to no value, but the table may be trained.
pub fn embed(tape: &mut Tape<'_>, op: &Embed) {
    let Some(dy) = tape.of(op.y) else { return };
    if let Some(gradient) = tape.gradient_of(op.table) {
        embed_backward(tape.rec, op, dy, gradient);
    }
}

pub fn layer_norm(tape: &mut Tape<'_>, op: &LayerNorm) {
    let Some(dy) = tape.of(op.y) else { return };
    if let Some(gradient) = op.w.and_then(|w| tape.gradient_of(w)) {
        let normed = ops::layer_norm(tape.rec, op.x, None, None, op.eps);
        column_sum(tape.rec, dy, Some(normed), gradient);
    }
    if let Some(gradient) = op.b.and_then(|b| tape.gradient_of(b)) {
        column_sum(tape.rec, dy, None, gradient);
    }
    tape.add(op.x, |rec| layer_norm_backward(rec, op, dy));
}

pub fn rms_norm(tape: &mut Tape<'_>, op: &RmsNorm) {
    let Some(dy) = tape.of(op.y) else { return };
    if let Some(gradient) = op.w.and_then(|w| tape.gradient_of(w)) {
        rms_norm_weight_backward(tape.rec, op, dy, gradient);
    }
    tape.add(op.x, |rec| rms_norm_backward(rec, op, dy));
}

pub fn rope(tape: &mut Tape<'_>, op: &Rope) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| rope_backward(rec, dy, op.table));
}

pub fn gather_rows(tape: &mut Tape<'_>, op: &GatherRows) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| gather_rows_backward(rec, dy));
}

pub fn softmax(tape: &mut Tape<'_>, op: &Softmax) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| softmax_backward(rec, op.y, dy));
}

pub fn log_softmax(tape: &mut Tape<'_>, op: &LogSoftmax) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| log_softmax_backward(rec, op.y, dy));
}
