//! Split attention of one row for heads of 128 with shared keys, together with the norms, rotations
//! and the append before it.

use super::attention::Attend;
use super::attention_split::WG;
use super::fused::{Problem, bind_finished, window};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};

kernel! {
    ATTENTION_DECODE_SPLIT: "attention_decode_split",
    wgsl: [
        "attention/attention_decode_split.wgsl", "attention/pieces/split_keys.wgsl", "shared/head_turns.wgsl", heads,
        "attention/pieces/eights_1.wgsl", "attention/pieces/sixteen.wgsl", "attention/pieces/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, splits: u32, append: u32, norm_q: u32, norm_k: u32,
        norm_v: u32, exchange: u32, eps: f32, scale: f32, softcap: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        partial: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 10848 },
    variants: {
        // Heads with the same keys that one workgroup takes.
        HEADS_4: "attention_decode_split_4" { heads: vary { HEADS: 4 } },
        HEADS_2: "attention_decode_split_2" { heads: vary { HEADS: 2 } },
    },
}

/// The dispatch of this rung, for rotations whose pairs are a power of two apart.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::DecodeSplit(op) = problem else { return None };
    let of = &op.split.of;
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    let (variant, together) = match (shape.rows, shape.dim) {
        (1, 128) if group.is_multiple_of(4) => (&HEADS_4, 4),
        (1, 128) if group.is_multiple_of(2) => (&HEADS_2, 2),
        _ => return None,
    };
    let finished = op.finished();
    // The masks are causal, with or without a window.
    let Attend { mask, scale, softcap } = of.attend;
    if !finished.table.shape.dim.is_power_of_two() {
        return None;
    }
    let params = Params {
        heads: shape.heads,
        kv_heads: of.kv_heads,
        head_dim: shape.dim,
        dim: finished.table.shape.dim,
        capacity: 0,
        window: window(mask),
        splits: op.split.splits,
        append: finished.append,
        norm_q: finished.norm_q,
        norm_k: finished.norm_k,
        norm_v: finished.norm_v,
        exchange: cx.caps.subgroup_size.min(WG),
        eps: finished.eps,
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = bind_finished!(Bind, &finished, of, partial: op.split.partial);
    Some(bind.dispatch(
        variant,
        params,
        Grid::PerRow { lead: fixed(1, 1), per_row: shape.heads / together * op.split.splits },
    ))
}
