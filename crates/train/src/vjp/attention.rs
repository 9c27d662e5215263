//! Attention over the keys of the step.

use crate::tape::Tape;
use kernels::ops::backward::{Attended, attention_backward_kv, attention_backward_q, attention_delta, attention_lse};
use kernels::ops::{Attention, Keys};

pub fn attention(tape: &mut Tape<'_>, op: &Attention) {
    let Some(dy) = tape.of(op.y) else { return };
    let Keys::Step { k, v, .. } = op.keys else { unreachable!("recordings of documents have no cache") };
    let of = Attended::of(tape.rec, op);
    let lse = attention_lse(tape.rec, of);
    tape.tap("attn_lse", lse);
    let stats = attention_delta(tape.rec, op.y, dy, lse);
    tape.add(op.q, |rec| attention_backward_q(rec, of, dy, stats));
    if tape.wants(k) || tape.wants(v) {
        let [dk, dv] = attention_backward_kv(tape.rec, of, dy, stats);
        tape.add(k, |_| dk);
        tape.add(v, |_| dv);
    }
}
