//! Split attention of one row for heads of 128 or 512 whose keys are shared.

use super::attention::{Attention, Drawn, appended_as};
use super::attention_split::AttentionSplit;
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::row::Row;
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_DEEP: "attention_deep",
    entry: "attention_deep",
    wgsl: [
        "attention_deep.wgsl", "shared/deep_keys.wgsl", "shared/heads_4.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32,
        scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, partial: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
}

kernel! {
    ATTENTION_DEEP_2: "attention_deep_2" = ATTENTION_DEEP with
    wgsl: [
        "attention_deep.wgsl", "shared/deep_keys.wgsl", "shared/heads_2.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_DEEP_LONG: "attention_deep_long" = ATTENTION_DEEP with
    wgsl: [
        "attention_deep.wgsl", "shared/deep_keys.wgsl", "shared/heads_4.wgsl", "shared/eights_2.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ]
}

/// Threads of a workgroup.
pub(super) const WG: u32 = 128;
/// The row of such an attention, and the heads that its workgroups take together: as many as divide the group that shares keys.
pub(super) fn row(of: &Attention) -> Option<(&'static Row, u32)> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    match (shape.rows, shape.dim) {
        (1, 128) if group.is_multiple_of(4) => Some((&ATTENTION_DEEP, 4)),
        (1, 128) if group.is_multiple_of(2) => Some((&ATTENTION_DEEP_2, 2)),
        (1, 512) if group.is_multiple_of(4) => Some((&ATTENTION_DEEP_LONG, 4)),
        _ => None,
    }
}

/// Heads that a workgroup takes together, of an attention that has a row.
pub(super) fn together(of: &Attention, caps: &Caps) -> Option<u32> {
    row(of).filter(|(row, _)| row.fits(caps)).map(|(_, heads)| heads)
}

/// The dispatch of a split attention that has a row.
pub(super) fn lower(split: &AttentionSplit, cx: &Lower<'_>) -> Option<Dispatch> {
    let (row, heads) = row(&split.of).filter(|(row, _)| row.fits(cx.caps))?;
    let Attention { q, kv, kv_heads, attend, positions, ends, sequences, .. } = &split.of;
    let shape = q.shape;
    let params = Params {
        heads: shape.heads,
        kv_heads: *kv_heads,
        head_dim: shape.dim,
        rows: shape.rows,
        capacity: 0,
        causal: u32::from(attend.mask != Mask::Bidirectional),
        window: if let Mask::Window(n) = attend.mask { n as u32 } else { 0 },
        splits: split.splits,
        exchange: cx.caps.subgroup_size.min(WG),
        scale: attend.scale,
        softcap: attend.softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: (*q).into(),
        positions: (*positions).into(),
        ends: (*ends).into(),
        sequences: (*sequences).into(),
        k_state: kv.k.into(),
        v_state: kv.v.into(),
        partial: split.partial.into(),
    };
    Some(Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads / heads * split.splits }) })
}

/// A row over keys in one part and in as many as there can be, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, dim) = (g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]), g.pick(&[128, 512]));
    let group = Some(g.pick(&[2, 4, 6, 8]));
    appended_as(g, Drawn { ty, dim, group, ..Drawn::default() })
}
