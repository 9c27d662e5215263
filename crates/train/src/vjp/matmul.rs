//! Products: dX = dY W, and dW = dY^T X where the weight is trained. The derivatives of an exact
//! product, as a router's, are exact.

use crate::tape::Tape;
use kernels::ops::Matmul;
use kernels::ops::backward::{matmul_input, matmul_input_exact, matmul_weight, matmul_weight_exact};

pub fn matmul(tape: &mut Tape<'_>, op: &Matmul) {
    let Some(dy) = tape.of(op.y) else { return };
    if let Some(gradient) = tape.gradient_of(op.w) {
        match op.exact {
            true => matmul_weight_exact(tape.rec, dy, op.x.flat(), gradient),
            false => matmul_weight(tape.rec, dy, op.x.flat(), gradient),
        }
    }
    tape.add(op.x, |rec| if op.exact { matmul_input_exact(rec, op.w, dy) } else { matmul_input(rec, op.w, dy) });
}
