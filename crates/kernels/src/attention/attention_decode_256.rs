//! Attention of one row over few keys, with the operations before it, for heads of 256 or 512 that
//! rotate as a whole. It works with and without a window, and with and without an append of the
//! row's own key and value. 32 threads share a key and exchange values that other kernels share
//! through workgroup memory.

use super::attention::Attend;
use super::fused::{AttentionDecode, Finished, Problem, bind_finished, window};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};

kernel! {
    ATTENTION_DECODE_256: "attention_decode_256",
    wgsl: [
        "attention/attention_decode_256.wgsl", threads, "attention/pieces/decode_range.wgsl", keys, result, "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32, eps: f32,
        scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 18560 },
    variants: {
        // Threads of a workgroup, and elements of a thread.
        HEAD_256: "attention_decode_256" {
            threads: vary { WG: 512 },
            keys: choose ["attention/pieces/head_256.wgsl", "attention/pieces/eights_1.wgsl"],
            result: choose ["attention/pieces/decode_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl"],
        },
        HEAD_512: "attention_decode_512" needs { threads: 256, workgroup_bytes: 13376 } {
            threads: vary { WG: 256 },
            keys: choose ["attention/pieces/head_512.wgsl", "attention/pieces/eights_2.wgsl"],
            result: choose ["attention/pieces/decode_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl"],
        },
        // Both lengths of heads again, with results as f32.
        HEAD_256_F32: "attention_decode_256_f32" needs { threads: 512, workgroup_bytes: 12416 } {
            threads: vary { WG: 512 },
            keys: choose ["attention/pieces/head_256.wgsl", "attention/pieces/eights_1.wgsl"],
            result: choose ["attention/pieces/decode_f32.wgsl"],
        },
        HEAD_512_F32: "attention_decode_512_f32" needs { threads: 256, workgroup_bytes: 10304 } {
            threads: vary { WG: 256 },
            keys: choose ["attention/pieces/head_512.wgsl", "attention/pieces/eights_2.wgsl"],
            result: choose ["attention/pieces/decode_f32.wgsl"],
        },
    },
}

/// Elements of a head that one workgroup computes.
const PART: u32 = 64;

/// The variant for heads of `dim` with a packed result or one in f32, if it exists.
pub(crate) fn variant(dim: u32, packed: bool) -> Option<&'static Variant> {
    match (dim, packed) {
        (256, true) => Some(&HEAD_256),
        (256, false) => Some(&HEAD_256_F32),
        (512, true) => Some(&HEAD_512),
        (512, false) => Some(&HEAD_512_F32),
        _ => None,
    }
}

/// Context length up to which this kernel is faster than parts and their join, if the limit for
/// heads of 128 is `keys`.
pub(crate) fn reach(dim: u32, keys: u32) -> u32 {
    keys * 256 / dim
}

/// The operands of the heads, if there is one row, the heads rotate as a whole and there is no
/// softcap.
pub(super) fn finished(op: &AttentionDecode) -> Option<Finished> {
    let of = &op.split.of;
    let Attend { mask: _, scale: _, softcap } = of.attend;
    let finished = op.finished();
    let serves = of.q.shape.rows == 1 && finished.table.shape.dim == of.q.shape.dim && softcap.is_none();
    serves.then_some(finished)
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Decode(op) = problem else { return None };
    let of = &op.split.of;
    let (variant, finished) = (variant(of.q.shape.dim, op.merge.in_8_bits())?, finished(op)?);
    // The masks are causal, with or without a window. `finished` checks the softcap.
    let Attend { mask, scale, softcap: _ } = of.attend;
    let (q_heads, kv_heads) = (of.q.shape.heads, of.kv_heads);
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        capacity: 0,
        window: window(mask),
        append: finished.append,
        norms: finished.norms(),
        exchange: cx.caps.subgroup_size,
        kv_heads_per_head: kv_heads as f32 / q_heads as f32,
        eps: finished.eps,
        scale: scale * std::f32::consts::LOG2_E,
    };
    let bind = bind_finished!(Bind, &finished, of, packed: op.merge.y);
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: fixed(1, 1), per_row: q_heads * (of.q.shape.dim / PART) }))
}
