//! Split attention of one row for heads of 128 whose keys are shared, and the choice of a row for those of 512.

use super::attention::{Attention, Drawn, appended_as};
use super::attention_deep_long::ATTENTION_DEEP_LONG;
use super::attention_split::ATTENTION_SPLIT;
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::row::Row;
use cpu_ref::KvType;

kernel! {
    ATTENTION_DEEP: "attention_deep" = ATTENTION_SPLIT with
    entry: "attention_deep",
    wgsl: [
        "attention_deep.wgsl", "shared/deep_keys.wgsl", "shared/heads_4.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_DEEP_2: "attention_deep_2" = ATTENTION_DEEP with
    wgsl: [
        "attention_deep.wgsl", "shared/deep_keys.wgsl", "shared/heads_2.wgsl", "shared/eights_1.wgsl",
        "shared/sixteen.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// The row of such an attention on any device, and the heads that its workgroups take together: as many as divide the group that shares keys.
pub(super) fn row(of: &Attention) -> Option<(&'static Row, u32)> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    match (shape.rows, shape.dim) {
        (1, 128) if group.is_multiple_of(4) => Some((&ATTENTION_DEEP, 4)),
        (1, 128) if group.is_multiple_of(2) => Some((&ATTENTION_DEEP_2, 2)),
        (1, 512) if group.is_multiple_of(4) => Some((&ATTENTION_DEEP_LONG, 4)),
        _ => None,
    }
}

/// The same where the row fits.
pub(super) fn fitting(of: &Attention, caps: &Caps) -> Option<(&'static Row, u32)> {
    row(of).filter(|(row, _)| row.fits(caps))
}

/// A row over keys in one part and in as many as there can be, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let group = Some(g.pick(&[2, 4, 6, 8]));
    appended_as(g, Drawn { ty, dim: 128, group, ..Drawn::default() })
}
