//! Attention of one row over few keys, with the operations before it, for heads of 128 that rotate
//! as a whole, whose queries and keys are both normed or both not. It has no barriers before the
//! join: 32 threads hold everything that a workgroup shares in other kernels.

use super::attention::Attend;
use super::fused::{Finished, Heads, Problem, bind_finished, heads_of_128};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};

kernel! {
    ATTENTION_DECODE_128: "attention_decode_128",
    wgsl: [
        "attention/attention_decode_128.wgsl", "attention/pieces/decode_keys.wgsl", result, "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, rows_apart: u32, normed: u32, exchange: u32, kv_heads_per_head: f32, eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 11328 },
    variants: {
        PACKED: "attention_decode_128" {
            result: choose ["attention/pieces/decode_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl"],
        },
        F32: "attention_decode_128_f32" needs { threads: 256, workgroup_bytes: 8256 } {
            result: choose ["attention/pieces/decode_f32.wgsl"],
        },
    },
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Decode(op) = problem else { return None };
    let Heads::All(heads) = &*op.heads else { return None };
    let of = &op.split.of;
    let heads = heads_of_128(heads, of.attend).filter(|heads| heads.q.shape.rows == 1)?;
    // `heads_of_128` checks the mask and the softcap.
    let Attend { mask: _, scale, softcap: _ } = of.attend;
    let (q_heads, kv_heads, finished) = (heads.q.shape.heads, of.kv_heads, Finished::from(heads));
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        rows_apart: 0,
        normed: finished.norm_q,
        exchange: cx.caps.subgroup_size,
        kv_heads_per_head: kv_heads as f32 / q_heads as f32,
        eps: finished.eps,
        scale: scale * std::f32::consts::LOG2_E,
    };
    let bind = bind_finished!(Bind, &finished, of, packed: op.merge.y);
    Some(bind.dispatch(
        if op.merge.in_8_bits() { &PACKED } else { &F32 },
        params,
        Grid::PerRow { lead: fixed(1, 1), per_row: q_heads },
    ))
}
