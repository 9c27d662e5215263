//! Attention of one row over few keys, with what comes before it, for heads of 256 or 512 that rotate as a whole, in windows or not, with and without a
//! key and value of the row's own: 32 threads have a key together and exchange what others share in memory. Made by the planner, never recorded.

use super::attention_short::{AttentionShort, Drawn, recorded};
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, fixed};
use crate::row::Row;

kernel! {
    ATTENTION_SHORT_WHOLE: "attention_short_whole",
    entry: "attention_short_whole",
    wgsl: [
        "attention_short_whole.wgsl", "shared/threads_512.wgsl", "shared/whole_keys.wgsl", "shared/whole_256.wgsl", "shared/eights_1.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, capacity: u32, window: u32, append: u32, norms: u32, exchange: u32, kv_heads_per_head: f32, eps: f32,
        scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

kernel! {
    ATTENTION_SHORT_WHOLE_LONG: "attention_short_whole_long" = ATTENTION_SHORT_WHOLE with
    wgsl: [
        "attention_short_whole.wgsl", "shared/threads_256.wgsl", "shared/whole_keys.wgsl", "shared/whole_512.wgsl", "shared/eights_2.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// Elements of a head that a workgroup makes.
const PART: u32 = 64;

/// The row for one row of queries with heads of `dim`, if there is one and it fits.
fn row(dim: u32, caps: &Caps) -> Option<&'static Row> {
    let row = match dim {
        256 => &ATTENTION_SHORT_WHOLE,
        512 => &ATTENTION_SHORT_WHOLE_LONG,
        _ => return None,
    };
    row.fits(caps).then_some(row)
}

/// The row that serves this attention, if one does.
pub(super) fn served(op: &AttentionShort, caps: &Caps) -> Option<&'static Row> {
    let shape = op.split.of.q.shape;
    let whole = op.finished().table.shape.dim == shape.dim && op.split.of.attend.softcap.is_none();
    row(shape.dim, caps).filter(|_| whole && shape.rows == 1)
}

/// Positions up to which such a row is faster than parts of the keys and their join, where heads of 128 are up to `keys`.
pub(super) fn keys(dim: u32, caps: &Caps, keys: u32) -> Option<u32> {
    row(dim, caps).map(|_| keys * 256 / dim)
}

/// Its dispatch.
pub(super) fn lower(op: &AttentionShort, row: &'static Row, cx: &Lower<'_>) -> Dispatch {
    let attention = &op.split.of;
    let finished = op.finished();
    let (q_heads, kv_heads) = (attention.q.shape.heads, attention.kv_heads);
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        capacity: 0,
        window: op.window(),
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
        packed: op.merge.y.into(),
    };
    Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: q_heads * (attention.q.shape.dim / PART) }) }
}

/// A row behind others that the states hold, as models record it: no key before it, some of each quarter of those taken at a time, all, one more, and
/// as many as the kernel takes; normed or not, in whole states and in rings, with and without keys of its own; and what the states hold then.
pub fn case(g: &mut Gen) -> Case {
    let (heads, dim, group) = (g.pick(&[1, 2, 3]), g.pick(&[256, 512]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[0, 1, 2, 7, 8, 20, 31, 32, 33, 130, 400, 511, 1024]);
    let window = g.coin().then(|| g.pick(&[1, 2, 32, 33, 300, 512]));
    recorded(g, Drawn { heads, dim, group, position, window, capped: false, whole: true })
}
