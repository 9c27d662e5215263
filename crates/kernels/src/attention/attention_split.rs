//! Attention of few rows, in parts of their keys, so that many workgroups share a long context.

use super::attention::{Attend, Cached};
use super::fused::{AttentionSplit, Problem, window};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use cpu_ref::Mask;

kernel! {
    ATTENTION_SPLIT: "attention_split",
    wgsl: ["attention/attention_split.wgsl", heads, slice, "attention/pieces/attention_part.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32,
        scale: f32, softcap: f32
    },
    // With them and without cooperative matrices, 96 rows after 4,096 tokens on Qwen2.5-1.5B are
    // read at 4,960 tok/s in place of 4,720.
    constants: [heads, kv_heads, head_dim, causal, window, splits, exchange, scale, softcap],
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv(Read), v_state: Kv(Read), partial: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 6144 },
    variants: {
        // Heads with the same keys that one workgroup takes.
        HEADS_1: "attention_split" { heads: vary { HEADS: 1 }, slice: choose ["attention/pieces/slice_8.wgsl"] },
        HEADS_2: "attention_split_2" { heads: vary { HEADS: 2 }, slice: choose ["attention/pieces/slice_8.wgsl"] },
        HEADS_4: "attention_split_4" { heads: vary { HEADS: 4 }, slice: choose ["attention/pieces/slice_8.wgsl"] },
        LONG_HEADS_1: "attention_split_wide" needs { threads: 128, workgroup_bytes: 10240 } {
            heads: vary { HEADS: 1 },
            slice: choose ["attention/pieces/slice_16.wgsl"],
        },
        LONG_HEADS_2: "attention_split_wide_2" needs { threads: 128, workgroup_bytes: 10240 } {
            heads: vary { HEADS: 2 },
            slice: choose ["attention/pieces/slice_16.wgsl"],
        },
    },
}

/// Threads of a workgroup.
pub(crate) const WG: u32 = 128;

/// Words of a part in addition to the values: its maximum and its sum of weights.
pub(crate) const PART_WORDS: u32 = 4;

/// Head elements that one thread holds: for heads up to [`LONG`], and for longer heads.
const PER_LANE: [u32; 2] = [8, 16];

pub(crate) const LONG: u32 = 256;

/// The variant for an attention, and the heads that a workgroup takes together: 4, 2 or 1. The
/// number divides the group of heads that share keys, and the heads fit in registers.
fn variant(of: &Cached) -> (&'static Variant, u32) {
    let (group, long) = (of.q.shape.heads / of.kv_heads, of.q.shape.dim > LONG);
    let fits = |n: u32| group.is_multiple_of(n) && !(long && n > 2);
    match (long, [4, 2].into_iter().find(|&n| fits(n))) {
        (false, Some(4)) => (&HEADS_4, 4),
        (false, Some(_)) => (&HEADS_2, 2),
        (false, None) => (&HEADS_1, 1),
        (true, Some(_)) => (&LONG_HEADS_2, 2),
        (true, None) => (&LONG_HEADS_1, 1),
    }
}

/// The dispatch of this rung, for heads that are divided among a power of two of threads.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Split(op) = problem else { return None };
    let dim = op.of.q.shape.dim;
    let slice = PER_LANE[usize::from(dim > LONG)];
    let (variant, together) = variant(&op.of);
    let sliced = dim.is_multiple_of(slice) && (dim / slice).is_power_of_two();
    sliced.then(|| dispatch(op, variant, together, cx))
}

/// The dispatch of a variant whose workgroups take `together` heads.
pub(super) fn dispatch(op: &AttentionSplit, variant: &'static Variant, together: u32, cx: &Lower<'_>) -> Dispatch {
    let Cached { q, kv, kv_heads, attend, positions, ends, sequences, y: _ } = op.of;
    let Attend { mask, scale, softcap } = attend;
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        head_dim: q.shape.dim,
        rows: q.shape.rows,
        capacity: 0,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        splits: op.splits,
        exchange: cx.caps.subgroup_size.min(WG),
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: q.into(),
        positions: positions.into(),
        ends: ends.into(),
        sequences: sequences.into(),
        k_state: kv.k.into(),
        v_state: kv.v.into(),
        partial: op.partial.into(),
    };
    bind.dispatch(variant, params, Grid::PerRow { lead: q.shape, per_row: q.shape.heads / together * op.splits })
}
