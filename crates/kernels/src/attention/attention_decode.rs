//! Attention of one row over few keys, with the norms, rotations and the append before it and the
//! packing after it, if the result is packed. One kernel does what three do for long contexts.

use super::attention::Attend;
use super::fused::{Problem, bind_finished, window};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};
use cpu_ref::Mask;

kernel! {
    ATTENTION_DECODE: "attention_decode",
    wgsl: [
        "attention/attention_decode.wgsl", threads, "attention/pieces/slice_8.wgsl", "shared/head_turns.wgsl", "shared/square_sums.wgsl",
        result, "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, append: u32, norm_q: u32, norm_k: u32, norm_v: u32,
        exchange: u32, eps: f32, scale: f32, softcap: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 15872 },
    variants: {
        // Heads of q, k and v of 256 quads or less.
        THREADS_256: "attention_decode" {
            threads: vary { WG: 256 },
            result: choose ["attention/pieces/decode_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl"],
        },
        // Heads of q, k and v of more than 256 quads.
        THREADS_512: "attention_decode_wide" needs { threads: 512, workgroup_bytes: 31744 } {
            threads: vary { WG: 512 },
            result: choose ["attention/pieces/decode_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl"],
        },
        // Both sizes of workgroups again, with results as f32.
        THREADS_256_F32: "attention_decode_f32" needs { threads: 256, workgroup_bytes: 12800 } {
            threads: vary { WG: 256 },
            result: choose ["attention/pieces/decode_f32.wgsl"],
        },
        THREADS_512_F32: "attention_decode_wide_f32" needs { threads: 512, workgroup_bytes: 25600 } {
            threads: vary { WG: 512 },
            result: choose ["attention/pieces/decode_f32.wgsl"],
        },
    },
}

/// Largest context length of a parity case and of a table.
pub(crate) const KEYS: u32 = 2048;

/// Threads of a workgroup; longer heads use [`WIDE_WG`].
const WG: u32 = 256;

const WIDE_WG: u32 = 512;

/// Elements of a head per thread.
const PER_LANE: u32 = 8;

const MAX_HEAD_DIM: u32 = 512;

/// Threads for heads of `dim`.
fn threads(dim: u32) -> u32 {
    if dim > WG { WIDE_WG } else { WG }
}

/// Context length up to which one workgroup per head is faster than parts, if the limit for heads
/// of 128 is `keys`. Longer heads have more elements per thread, so their limit is lower.
pub(crate) fn reach(dim: u32, keys: u32) -> u32 {
    keys.min(keys * 128 / dim * (threads(dim) / WG))
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Decode(op) = problem else { return None };
    let of = &op.split.of;
    let (shape, finished) = (of.q.shape, op.finished());
    let Attend { mask, scale, softcap } = of.attend;
    let sliced = shape.dim <= MAX_HEAD_DIM && shape.dim.is_power_of_two() && shape.dim >= 4 * PER_LANE;
    if shape.rows > 1 || !sliced || mask == Mask::Bidirectional {
        return None;
    }
    let params = Params {
        q_heads: shape.heads,
        heads: of.kv_heads,
        head_dim: shape.dim,
        dim: finished.table.shape.dim,
        capacity: 0,
        window: window(mask),
        append: finished.append,
        norm_q: finished.norm_q,
        norm_k: finished.norm_k,
        norm_v: finished.norm_v,
        exchange: cx.caps.subgroup_size.min(threads(shape.dim)),
        eps: finished.eps,
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = bind_finished!(Bind, &finished, of, packed: op.merge.y);
    let variant = match (shape.dim > WG, op.merge.in_8_bits()) {
        (false, true) => &THREADS_256,
        (false, false) => &THREADS_256_F32,
        (true, true) => &THREADS_512,
        (true, false) => &THREADS_512_F32,
    };
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: fixed(1, 1), per_row: shape.heads }))
}
