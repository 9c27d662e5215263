//! Attention in which one workgroup computes one head of one row: the portable kernel.

use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::lower::attention::fused::{Problem, window};
use crate::ops::attention::{Attend, Attention, Keys};
use cpu_ref::Mask;

kernel! {
    ATTENTION: "attention",
    wgsl: ["attention/attention.wgsl", keys, "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 7168 },
    variants: {
        CACHE: "attention" { keys: choose ["attention/pieces/keys_of_cache.wgsl"] },
        // Keys and values are tensors of the step: `rows` are row numbers, `sequences` the first
        // rows of the documents.
        STEP: "attention_step" { keys: choose ["attention/pieces/keys_of_step.wgsl"] },
    },
}

/// The dispatch for any recorded attention.
pub(super) fn take(problem: Problem<'_>, _: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Recorded(op) = problem else { return None };
    let Attention { q, keys, kv_heads, attend, positions, ends, y } = *op;
    let Attend { mask, scale, softcap } = attend;
    let (variant, sequences, k_state, v_state) = match keys {
        Keys::Cache { kv, sequences } => (&CACHE, sequences, Arg::from(kv.k), Arg::from(kv.v)),
        Keys::Step { k, v, firsts } => (&STEP, firsts, k.into(), v.into()),
    };
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        head_dim: q.shape.dim,
        rows: q.shape.rows,
        capacity: 0,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: q.into(),
        positions: positions.into(),
        ends: ends.into(),
        sequences: sequences.into(),
        k_state,
        v_state,
        y: y.into(),
    };
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: q.shape, per_row: q.shape.heads }))
}
