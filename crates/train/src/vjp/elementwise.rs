//! Sums, factors and activations.

use crate::tape::Tape;
use kernels::ops::backward::{geglu_backward, softcap_backward, swiglu_backward};
use kernels::ops::{self, Add, Factor, Geglu, Mul, Scale, Softcap, Swiglu, Term};

pub fn add(tape: &mut Tape<'_>, op: &Add) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.a, |_| dy);
    if let Term::Tensor(b) = op.b {
        tape.add(b, |_| dy);
    }
}

pub fn scale(tape: &mut Tape<'_>, op: &Scale) {
    let Some(dy) = tape.of(op.y) else { return };
    tape.add(op.x, |rec| ops::scale(rec, dy, op.s));
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
        Factor::Row(w) => tape.add(op.a, |rec| ops::mul_row(rec, dy, w)),
    }
}
