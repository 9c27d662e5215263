//! Attention of one row over a window of many keys, with the operations before it, in parts of the
//! keys, for heads of 256 that rotate as a whole.

use super::attention::Attend;
use super::attention_decode_256::finished;
use super::fused::{AttentionDecode, Problem, bind_finished, window};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};

kernel! {
    ATTENTION_DECODE_WINDOW: "attention_decode_window",
    wgsl: [
        "attention/attention_decode_window.wgsl", "attention/pieces/decode_range.wgsl", "attention/pieces/head_256.wgsl",
        "attention/pieces/eights_1.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, splits: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32,
        eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        partial: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 24708 },
}

/// Elements of a head.
const HEAD: u32 = 256;

/// Keys of a part.
const KEYS: u32 = 64;

/// The number of parts is a multiple of this.
const TOGETHER: u32 = 4;

/// Largest number of parts: every workgroup of the product reads all of them.
const MOST: u32 = 8;

/// Number of parts into which the window of an attention is split.
pub(super) fn splits(op: &AttentionDecode) -> u32 {
    window(op.split.of.attend.mask).div_ceil(KEYS).next_multiple_of(TOGETHER)
}

/// The dispatch of this rung, if the tensor of the split attention has room for the parts.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Window(op) = problem else { return None };
    let of = &op.split.of;
    let (finished, splits) = (finished(op)?, splits(op));
    // `finished` checks the softcap. Without a window there are no parts.
    let Attend { mask, scale, softcap: _ } = of.attend;
    if of.q.shape.dim != HEAD || !(1..=MOST).contains(&splits) || op.split.splits < splits {
        return None;
    }
    let (q_heads, kv_heads) = (of.q.shape.heads, of.kv_heads);
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        capacity: 0,
        window: window(mask),
        splits,
        append: finished.append,
        norms: finished.norms(),
        exchange: cx.caps.subgroup_size,
        kv_heads_per_head: kv_heads as f32 / q_heads as f32,
        eps: finished.eps,
        scale: scale * std::f32::consts::LOG2_E,
    };
    let bind = bind_finished!(Bind, &finished, of, partial: op.split.partial);
    Some(bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: q_heads * splits }))
}
