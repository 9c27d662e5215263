//! Routed experts: the derivative goes through their results and through their weights. The choice
//! is constant.

use crate::error::Error;
use crate::tape::Tape;
use kernels::ops::backward::{
    combine_experts_backward, matmul_experts_input, mul_sigmoid_backward, route_backward, sum_slots,
};
use kernels::ops::{self, CombineExperts, MatmulExperts, MulSigmoid, Route};

pub fn route(tape: &mut Tape<'_>, op: &Route) -> Result<(), Error> {
    if op.scale.is_some_and(|scale| tape.gradient_of(scale).is_some()) {
        return Err(Error::NoGradient { operation: "route" });
    }
    let Some(dweights) = tape.of(op.weights) else { return Ok(()) };
    tape.add(op.logits, |rec| route_backward(rec, op, dweights));
    Ok(())
}

pub fn matmul_experts(tape: &mut Tape<'_>, op: &MatmulExperts) -> Result<(), Error> {
    if tape.gradient_of(op.w).is_some() {
        return Err(Error::NoGradient { operation: "matmul_experts" });
    }
    let Some(dy) = tape.of(op.y) else { return Ok(()) };
    tape.add(op.x, |rec| {
        let each = matmul_experts_input(rec, op, dy);
        // The slots of a row read one row, or each its own.
        if op.x.shape.heads == each.shape.heads { each } else { sum_slots(rec, each) }
    });
    Ok(())
}

pub fn combine_experts(tape: &mut Tape<'_>, op: &CombineExperts) {
    let Some(dy) = tape.of(op.y) else { return };
    if tape.wants(op.x) || tape.wants(op.weights) {
        let [dx, dweights] = combine_experts_backward(tape.rec, op, dy);
        tape.add(op.x, |_| dx);
        tape.add(op.weights, |_| dweights);
    }
}

pub fn mul_sigmoid(tape: &mut Tape<'_>, op: &MulSigmoid) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| ops::mul_sigmoid(rec, dy, op.gate));
    tape.add(op.gate, |rec| mul_sigmoid_backward(rec, op.x, op.gate, dy));
}
