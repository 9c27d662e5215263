//! Norms, rotations and the choice of rows.

use crate::tape::Tape;
use kernels::ops::GatherRows;
use kernels::ops::RmsNorm;
use kernels::ops::Rope;
use kernels::ops::backward::{gather_rows_backward, rms_norm_backward, rope_backward};

pub fn rms_norm(tape: &mut Tape<'_>, op: &RmsNorm) {
    let Some(dy) = tape.of(op.y) else { return };
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
