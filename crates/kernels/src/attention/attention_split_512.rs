//! Split attention of one row for heads of 512 of which four share keys: all scores first, then the
//! values.

use super::attention::Attend;
use super::attention_split::{ATTENTION_SPLIT, dispatch};
use super::fused::Problem;
use crate::kernel::dispatch::{Dispatch, Lower};

kernel! {
    ATTENTION_SPLIT_512: "attention_split_512",
    wgsl: [
        "attention/attention_split_512.wgsl", "attention/pieces/eights_2.wgsl", "attention/pieces/sixteen.wgsl",
        "attention/pieces/attention_part.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    like: ATTENTION_SPLIT,
    needs: { threads: 512, workgroup_bytes: 18960 },
}

/// Heads that one workgroup takes together.
const TOGETHER: u32 = 4;

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Split(op) = problem else { return None };
    // The dispatch has all of them as params.
    let Attend { mask: _, scale: _, softcap: _ } = op.of.attend;
    let (shape, group) = (op.of.q.shape, op.of.q.shape.heads / op.of.kv_heads);
    let serves = (shape.rows, shape.dim) == (1, 512) && group.is_multiple_of(TOGETHER);
    serves.then(|| dispatch(op, ATTENTION_SPLIT_512.only(), TOGETHER, cx))
}
