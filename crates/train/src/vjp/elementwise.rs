//! Sums, factors and activations.

use crate::tape::Tape;
use kernels::ops::backward::{
    column_sum, geglu_backward, gelu_backward, relu_backward, silu_backward, softcap_backward, swiglu_backward,
};
use kernels::ops::{self, Add, Dropout, Factor, Geglu, Gelu, Mul, Relu, Scale, Silu, Softcap, Swiglu, Term};

pub fn add(tape: &mut Tape<'_>, op: &Add) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.a, |_| dy);
    match op.b {
        Term::Tensor(b) => tape.add(b, |_| dy),
        Term::Row(w) => {
            if let Some(gradient) = tape.gradient_of(w) {
                column_sum(tape.rec, dy, None, gradient);
            }
        }
    }
}

pub fn scale(tape: &mut Tape<'_>, op: &Scale) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| ops::scale(rec, dy, op.s));
}

pub fn relu(tape: &mut Tape<'_>, op: &Relu) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| relu_backward(rec, op.x, dy));
}

pub fn silu(tape: &mut Tape<'_>, op: &Silu) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| silu_backward(rec, op.x, dy));
}

pub fn gelu(tape: &mut Tape<'_>, op: &Gelu) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| gelu_backward(rec, op.x, dy));
}

pub fn swiglu(tape: &mut Tape<'_>, op: &Swiglu) {
    let Some(dy) = tape.of(op.y) else { return };
    if tape.wants(op.gate) || tape.wants(op.up) {
        let [dgate, dup] = swiglu_backward(tape.rec, op.gate, op.up, dy);
        tape.add(op.gate, |_| dgate);
        tape.add(op.up, |_| dup);
    }
}

pub fn geglu(tape: &mut Tape<'_>, op: &Geglu) {
    let Some(dy) = tape.of(op.y) else { return };
    if tape.wants(op.gate) || tape.wants(op.up) {
        let [dgate, dup] = geglu_backward(tape.rec, op, dy);
        tape.add(op.gate, |_| dgate);
        tape.add_columns(op.up, op.start, dup);
    }
}

pub fn softcap(tape: &mut Tape<'_>, op: &Softcap) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| softcap_backward(rec, op, dy));
}

pub fn mul(tape: &mut Tape<'_>, op: &Mul) {
    let Some(dy) = tape.of(op.y) else { return };
    match op.b {
        Factor::Tensor(b) => {
            tape.add(op.a, |rec| ops::mul(rec, dy, b));
            tape.add(b, |rec| ops::mul(rec, dy, op.a));
        }
        Factor::Row(w) => {
            if let Some(gradient) = tape.gradient_of(w) {
                column_sum(tape.rec, dy, Some(op.a), gradient);
            }
            tape.add(op.a, |rec| ops::mul_row(rec, dy, w));
        }
    }
}

/// The derivative drops the elements that the forward pass dropped.
pub fn dropout(tape: &mut Tape<'_>, op: &Dropout) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| ops::dropout(rec, dy, op.key, op.tensor, op.rate));
}
