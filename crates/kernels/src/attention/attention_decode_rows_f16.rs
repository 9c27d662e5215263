//! Attention of several rows, each of another sequence, over few keys, with the operations before
//! it and the packing to f16 after it, for heads of 128 that rotate as a whole. One kernel does the
//! work of four.

use super::attention::Attend;
use super::fused::{Finished, Problem, bind_finished, heads_of_128};
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use crate::norm::pack_f16::pitches;

kernel! {
    ATTENTION_DECODE_ROWS_F16: "attention_decode_rows_f16",
    wgsl: [
        "attention/attention_decode_rows_f16.wgsl", "attention/pieces/rows_heads.wgsl", "attention/pieces/decode_keys.wgsl", heads,
        "shared/head_turns.wgsl", "attention/pieces/sixteen.wgsl", "attention/pieces/sixteen_share.wgsl", "shared/half_scale.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, row_pitch: u32, slab_pitch: u32, eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Both), v_state: Kv(Both),
        scales: Write, halves: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-9,
    needs: { threads: 256, workgroup_bytes: 13568 },
    variants: {
        // Heads with the same keys that one workgroup takes.
        HEADS_1: "attention_decode_rows_f16" { heads: vary { HEADS: 1 } },
        HEADS_2: "attention_decode_rows_f16_2" { heads: vary { HEADS: 2 } },
        HEADS_4: "attention_decode_rows_f16_4" { heads: vary { HEADS: 4 } },
    },
}

/// The dispatch of this rung.
pub(super) fn take(problem: Problem<'_>, cx: &Lower<'_>) -> Option<Dispatch> {
    let Problem::DecodeF16(op) = problem else { return None };
    let of = &op.split.of;
    let heads = heads_of_128(&op.heads, of.attend).filter(|heads| heads.q.shape.rows > 1)?;
    // `heads_of_128` checks the mask and the softcap.
    let Attend { mask: _, scale, softcap: _ } = of.attend;
    let (shape, finished) = (heads.q.shape, Finished::from(heads));
    let group = shape.heads / of.kv_heads;
    // Four heads to a workgroup instead of two, if that still leaves 3/2 times as many workgroups
    // as the device runs at the same time.
    let many = cx.caps.table.workgroups * 3 / 2;
    let (variant, together) = match group {
        _ if group.is_multiple_of(4) && shape.rows * shape.heads / 4 >= many => (&HEADS_4, 4),
        _ if group.is_multiple_of(2) => (&HEADS_2, 2),
        _ => (&HEADS_1, 1),
    };
    let (row_pitch, slab_pitch) = pitches(op.pack.x.shape.width(), op.pack.slab);
    let params = Params {
        q_heads: shape.heads,
        heads: of.kv_heads,
        group,
        rows: shape.rows,
        capacity: 0,
        normed: finished.norm_q,
        exchange: cx.caps.subgroup_size,
        row_pitch,
        slab_pitch,
        eps: finished.eps,
        scale: scale * std::f32::consts::LOG2_E,
    };
    let bind = bind_finished!(Bind, &finished, of, scales: op.pack.scales, halves: op.pack.halves);
    Some(bind.dispatch(variant, params, Grid::PerRow { lead: shape, per_row: shape.heads / together }))
}
