//! Split attention of one row for heads of 128 whose keys are shared, with the norms, rotations and the append before it.

use super::attention_deep;
use super::attention_short::{self, AttentionShort, Drawn};
use super::attention_split::WG;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, fixed};
use crate::row::Row;

kernel! {
    ATTENTION_DEEP_RAW: "attention_deep_raw",
    entry: "attention_deep_raw",
    wgsl: [
        "attention_deep_raw.wgsl", "shared/deep_keys.wgsl", "shared/head_turns.wgsl", "shared/heads_4.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, splits: u32, append: u32, norm_q: u32, norm_k: u32,
        norm_v: u32, exchange: u32, eps: f32, scale: f32, softcap: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        partial: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

kernel! {
    ATTENTION_DEEP_RAW_2: "attention_deep_raw_2" = ATTENTION_DEEP_RAW with
    wgsl: [
        "attention_deep_raw.wgsl", "shared/deep_keys.wgsl", "shared/head_turns.wgsl", "shared/heads_2.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// The rows beside those of [`attention_deep`].
static ROWS: [(&Row, &Row); 2] =
    [(&attention_deep::ATTENTION_DEEP, &ATTENTION_DEEP_RAW), (&attention_deep::ATTENTION_DEEP_2, &ATTENTION_DEEP_RAW_2)];

/// The dispatch of the split attention of one row with what is before it, where the split has a row and pairs that turn together are a power of two
/// apart.
pub(super) fn lower(op: &AttentionShort, cx: &Lower<'_>) -> Option<Dispatch> {
    let of = &op.split.of;
    let (ready, heads) = attention_deep::row(of)?;
    let (_, row) = *ROWS.iter().find(|(beside, row)| *beside == ready && row.fits(cx.caps))?;
    let finished = op.finished();
    if !finished.table.shape.dim.is_power_of_two() {
        return None;
    }
    let params = Params {
        heads: of.q.shape.heads,
        kv_heads: of.kv_heads,
        head_dim: of.q.shape.dim,
        dim: finished.table.shape.dim,
        capacity: 0,
        window: op.window(),
        splits: op.split.splits,
        append: finished.append,
        norm_q: finished.norm_q,
        norm_k: finished.norm_k,
        norm_v: finished.norm_v,
        exchange: cx.caps.subgroup_size.min(WG),
        eps: finished.eps,
        scale: of.attend.scale,
        softcap: of.attend.softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: finished.q,
        k: finished.k,
        v: finished.v,
        wq: finished.wq,
        wk: finished.wk,
        table: finished.table.into(),
        positions: of.positions.into(),
        sequences: of.sequences.into(),
        k_state: of.kv.k.into(),
        v_state: of.kv.v.into(),
        partial: op.split.partial.into(),
    };
    Some(Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: of.q.shape.heads / heads * op.split.splits }) })
}

/// Rows past those that take one workgroup per head: parts that are whole and one key more and less, with windows that end within them or
/// before their start, in whole states and in rings.
pub fn case(g: &mut Gen) -> Case {
    let position = g.pick(&[512, 541, 542, 543, 575, 900, 2046]);
    let window = g.coin().then(|| g.pick(&[513, 600, 1024]));
    let group = g.pick(&[2, 4, 6, 8]);
    let heads = g.pick(&[1, 2]);
    let (capped, whole) = (g.coin(), g.coin());
    let mut case = attention_short::recorded(g, Drawn { heads, dim: 128, group, position, window, capped, whole });
    // Parts of one tile of keys and of several.
    case.split_workgroups = g.pick(&[None, Some(8)]);
    case
}
