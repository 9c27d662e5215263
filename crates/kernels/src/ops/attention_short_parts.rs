//! Attention of one row over a window of many keys, with what comes before it, in parts of these keys, for heads of 256 that rotate as a whole. Made by the
//! planner, never recorded.

use super::attention_short::AttentionShort;
use super::attention_short_whole;
use crate::device::Caps;
use crate::plan::{Dispatch, Grid, Lower, fixed};

kernel! {
    ATTENTION_SHORT_PARTS: "attention_short_parts",
    entry: "attention_short_parts",
    wgsl: [
        "attention_short_parts.wgsl", "shared/threads_512.wgsl", "shared/whole_keys.wgsl", "shared/whole_256.wgsl", "shared/eights_1.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, splits: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32,
        eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        partial: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

/// Elements of a head.
const HEAD: u32 = 256;
/// Keys of a part.
const KEYS: u32 = 64;
/// Parts come by so many.
const TOGETHER: u32 = 4;
/// Parts at most: a product's workgroups read all of them.
const MOST: u32 = 8;

/// The parts that this attention is split into, if the row serves it: of a window, and as many as there is room for.
pub(super) fn served(op: &AttentionShort, caps: &Caps) -> Option<u32> {
    let splits = op.window().div_ceil(KEYS).next_multiple_of(TOGETHER);
    let whole = op.split.of.q.shape.dim == HEAD && attention_short_whole::served(op, caps).is_some();
    let room = splits.clamp(1, MOST) == splits && op.split.splits >= splits;
    (whole && room && ATTENTION_SHORT_PARTS.fits(caps)).then_some(splits)
}

/// Its dispatch.
pub(super) fn lower(op: &AttentionShort, splits: u32, cx: &Lower<'_>) -> Dispatch {
    let attention = &op.split.of;
    let finished = op.finished();
    let (q_heads, kv_heads) = (attention.q.shape.heads, attention.kv_heads);
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        capacity: 0,
        window: op.window(),
        splits,
        append: finished.append,
        norms: finished.norms(),
        exchange: cx.caps.subgroup_size,
        kv_heads_per_head: kv_heads as f32 / q_heads as f32,
        eps: finished.eps,
        scale: attention.attend.scale * std::f32::consts::LOG2_E,
    };
    let bind = Bind {
        q: finished.q,
        k: finished.k,
        v: finished.v,
        wq: finished.wq,
        wk: finished.wk,
        table: finished.table.into(),
        positions: attention.positions.into(),
        sequences: attention.sequences.into(),
        k_state: attention.kv.k.into(),
        v_state: attention.kv.v.into(),
        partial: op.split.partial.into(),
    };
    bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: q_heads * splits })
}
