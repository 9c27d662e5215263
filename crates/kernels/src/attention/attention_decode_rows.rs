//! Attention of few rows, each of another sequence, over few keys, with the operations before it,
//! for heads of 128 that rotate as a whole. One kernel does the work of three.

use super::attention::Attend;
use super::fused::{Finished, Heads, Problem, bind_finished, heads_of_128};
use crate::kernel::dispatch::{Dispatch, Grid, Lower};

kernel! {
    ATTENTION_DECODE_ROWS: "attention_decode_rows",
    wgsl: [
        "attention/attention_decode_rows.wgsl", "attention/pieces/decode_keys.wgsl", heads, "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, eps: f32, scale: f32 },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 11392 },
    variants: {
        // Heads with the same keys that one workgroup takes.
        HEADS_1: "attention_decode_rows" { heads: vary { HEADS: 1 } },
        HEADS_2: "attention_decode_rows_2" needs { threads: 256, workgroup_bytes: 15488 } { heads: vary { HEADS: 2 } },
    },
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::Decode(op) = problem else { return None };
    let Heads::All(heads) = &*op.heads else { return None };
    let of = &op.split.of;
    let heads = heads_of_128(heads, of.attend).filter(|heads| heads.q.shape.rows > 1 && op.merge.in_8_bits())?;
    // `heads_of_128` checks the mask and the softcap.
    let Attend { mask: _, scale, softcap: _ } = of.attend;
    let (shape, finished) = (heads.q.shape, Finished::from(heads));
    let group = shape.heads / of.kv_heads;
    let (variant, together) = if group.is_multiple_of(2) { (&HEADS_2, 2) } else { (&HEADS_1, 1) };
    let params = Params {
        q_heads: shape.heads,
        heads: of.kv_heads,
        group,
        rows: shape.rows,
        capacity: 0,
        normed: finished.norm_q,
        exchange: cx.caps.subgroup_size,
        eps: finished.eps,
        scale: scale * std::f32::consts::LOG2_E,
    };
    let bind = bind_finished!(Bind, &finished, of, packed: op.merge.y);
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: shape, per_row: shape.heads / together }))
}
