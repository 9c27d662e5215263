//! Sums, factors and activations.

use crate::tape::Tape;
use kernels::ops;
use kernels::ops::Scale;
use kernels::ops::Swiglu;
use kernels::ops::backward::swiglu_backward;
use kernels::ops::{Add, Term};

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
