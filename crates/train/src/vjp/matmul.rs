//! Products: dX = dY W, and dW = dY^T X where the weight is trained.

use crate::tape::Tape;
use kernels::ops::Matmul;
use kernels::ops::backward::{matmul_input, matmul_weight};

pub fn matmul(tape: &mut Tape<'_>, op: &Matmul) {
    let Some(dy) = tape.of(op.y) else { return };
    if let Some(gradient) = tape.gradient_of(op.w) {
        matmul_weight(tape.rec, dy, op.x.flat(), gradient);
    }
    tape.add(op.x, |rec| matmul_input(rec, op.w, dy));
}
