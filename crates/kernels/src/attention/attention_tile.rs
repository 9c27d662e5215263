//! Attention of many rows in f32, in tiles of queries and keys that fit any device.

use super::attention::{Attend, Attention, Cached, Keys};
use super::fused::{Problem, window};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use cpu_ref::Mask;

kernel! {
    ATTENTION_TILE: "attention_tile",
    wgsl: ["attention/attention_tile.wgsl", head, "attention/pieces/tile_loads.wgsl", "attention/pieces/tile_weights.wgsl", keys],
    params: Params {
        heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv(Read), v_state: Kv(Read), y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 9472 },
    variants: {
        // SLICE: columns of queries and keys that are staged at a time. WG: threads per workgroup.
        HEAD_64: "attention_tile_64" { head: vary { HEAD: 64, SLICE: 16, WG: 64 }, keys: choose ["attention/pieces/keys_of_cache.wgsl"] },
        HEAD_128: "attention_tile_128" needs { threads: 64, workgroup_bytes: 11776 } {
            head: vary { HEAD: 128, SLICE: 32, WG: 64 },
            keys: choose ["attention/pieces/keys_of_cache.wgsl"],
        },
        HEAD_256: "attention_tile_256" needs { threads: 128, workgroup_bytes: 14848 } {
            head: vary { HEAD: 256, SLICE: 16, WG: 128 },
            keys: choose ["attention/pieces/keys_of_cache.wgsl"],
        },
        HEAD_512: "attention_tile_512" needs { threads: 128, workgroup_bytes: 15872 } {
            head: vary { HEAD: 512, SLICE: 16, WG: 128 },
            keys: choose ["attention/pieces/keys_of_cache.wgsl"],
        },
        STEP_64: "attention_tile_64_step" only Step { head: vary { HEAD: 64, SLICE: 16, WG: 64 }, keys: choose ["attention/pieces/keys_of_step.wgsl"] },
        STEP_128: "attention_tile_128_step" needs { threads: 64, workgroup_bytes: 11776 } only Step {
            head: vary { HEAD: 128, SLICE: 32, WG: 64 },
            keys: choose ["attention/pieces/keys_of_step.wgsl"],
        },
        STEP_256: "attention_tile_256_step" needs { threads: 128, workgroup_bytes: 14848 } only Step {
            head: vary { HEAD: 256, SLICE: 16, WG: 128 },
            keys: choose ["attention/pieces/keys_of_step.wgsl"],
        },
        STEP_512: "attention_tile_512_step" needs { threads: 128, workgroup_bytes: 15872 } only Step {
            head: vary { HEAD: 512, SLICE: 16, WG: 128 },
            keys: choose ["attention/pieces/keys_of_step.wgsl"],
        },
    },
}

/// The length of a head, and the variants over a cache and over the keys of the step.
const BY_HEAD: [(u32, [&Variant; 2]); 4] = [
    (64, [&HEAD_64, &STEP_64]),
    (128, [&HEAD_128, &STEP_128]),
    (256, [&HEAD_256, &STEP_256]),
    (512, [&HEAD_512, &STEP_512]),
];

/// Threads of a workgroup.
const fn threads_of(head: u32) -> u32 {
    if head <= 128 { 64 } else { 128 }
}

/// Queries of a workgroup: rows of the step times the heads that share a kv head.
const fn queries(head: u32) -> u32 {
    64 * threads_of(head) / head
}

/// Smallest number of rows.
const LEAST_ROWS: u32 = 16;

/// The threads of an attention over a cache, if its heads have tiles.
pub(crate) fn threads(of: &Cached) -> Option<u32> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    let tiled = BY_HEAD.iter().any(|(head, _)| *head == shape.dim) && group <= queries(shape.dim);
    tiled.then(|| of.kv_heads * shape.rows.div_ceil(queries(shape.dim) / group) * threads_of(shape.dim))
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, _: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Recorded(op) = problem else { return None };
    let Attention { q, keys, kv_heads, attend, positions, ends, y } = *op;
    let Attend { mask, scale, softcap } = attend;
    let group = q.shape.heads / kv_heads;
    let (_, [cache, step]) = BY_HEAD.iter().find(|(head, _)| *head == q.shape.dim && group <= queries(*head))?;
    if q.shape.rows < LEAST_ROWS {
        return None;
    }
    let (variant, sequences, k_state, v_state) = match keys {
        Keys::Cache { kv, sequences } => (cache, sequences, Arg::from(kv.k), Arg::from(kv.v)),
        Keys::Step { k, v, firsts } => (step, firsts, k.into(), v.into()),
    };
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
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
    Some(bind.dispatch(variant, params, Grid::Tiles { lead: q.shape, tile: queries(q.shape.dim) / group, x: kv_heads }))
}
