//! Split attention of one row for heads of 128 with shared keys: all scores first, then the values.

use super::attention::{Attend, Cached};
use super::attention_split::{ATTENTION_SPLIT, dispatch};
use super::fused::Problem;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Lower};

kernel! {
    ATTENTION_SPLIT_128: "attention_split_128",
    wgsl: [
        "attention/attention_split_128.wgsl", "attention/pieces/split_keys.wgsl", heads, "attention/pieces/eights_1.wgsl",
        "attention/pieces/sixteen.wgsl", "attention/pieces/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    like: ATTENTION_SPLIT,
    needs: { threads: 128, workgroup_bytes: 10848 },
    variants: {
        // Heads with the same keys that one workgroup takes.
        HEADS_4: "attention_split_128_4" { heads: vary { HEADS: 4 } },
        HEADS_2: "attention_split_128_2" { heads: vary { HEADS: 2 } },
    },
}

/// The variant for this attention, and the heads that a workgroup takes together. The number
/// divides the group of heads that share keys.
pub(super) fn variant(of: &Cached) -> Option<(&'static Variant, u32)> {
    // The dispatch has all of them as params.
    let Attend { mask: _, scale: _, softcap: _ } = of.attend;
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    match (shape.rows, shape.dim) {
        (1, 128) if group.is_multiple_of(4) => Some((&HEADS_4, 4)),
        (1, 128) if group.is_multiple_of(2) => Some((&HEADS_2, 2)),
        _ => None,
    }
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Split(op) = problem else { return None };
    let (variant, together) = variant(&op.of)?;
    Some(dispatch(op, variant, together, cx))
}
