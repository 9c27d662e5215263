//! Derivative of attention by its queries, of many rows, through cooperative matrices (tensor
//! cores).

use super::attention::Attend;
use super::attention_backward_q::AttentionBackwardQ;
use super::attention_lse::Attended;
use super::fused::window;
use super::tile32::{self, ByHead, QUERIES};
use crate::caps::Caps;
use crate::graph::tensor::Tensor;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use cpu_ref::Mask;

kernel! {
    ATTENTION_BACKWARD_Q_FLASH: "attention_backward_q_flash",
    wgsl: [
        "attention/attention_backward_q_flash.wgsl", head, "attention/pieces/tile32_rows.wgsl",
        "attention/pieces/tile32_scores.wgsl", "attention/pieces/tile32_slopes.wgsl", "attention/pieces/span_of_row.wgsl",
        "attention/pieces/score_slope.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind {
        q: Read, k: Read, v: Read, v_scales: Read, dy: Read, dy_scales: Read, stats: Read, spans: Read, step_rows: Read, dq: Write,
    },
    cpu: cpu_ref::attention_backward_q,
    // f32 before the derivative by a score is rounded to f16 may decide it either way.
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 30208 },
    variants: {
        // Elements of a head, and the elements that are staged together.
        HEAD_64: "attention_backward_q_flash_64" { head: vary { HEAD: 64, SLICE: 64 } },
        HEAD_128: "attention_backward_q_flash_128" needs { threads: 256, workgroup_bytes: 46592 } { head: vary { HEAD: 128, SLICE: 128 } },
        HEAD_256: "attention_backward_q_flash_256" needs { threads: 256, workgroup_bytes: 46592 } { head: vary { HEAD: 256, SLICE: 128 } },
        HEAD_512: "attention_backward_q_flash_512" needs { threads: 256, workgroup_bytes: 46592 } { head: vary { HEAD: 512, SLICE: 128 } },
    },
}

static BY_HEAD: ByHead = [(64, &HEAD_64), (128, &HEAD_128), (256, &HEAD_256), (512, &HEAD_512)];

/// The variant that takes the operation on this device, if any does.
pub(crate) fn variant(of: &Attended, caps: &Caps) -> Option<&'static Variant> {
    tile32::variant(of, &BY_HEAD, caps)
}

/// The operation's dispatch, with `v` and `dy` in f16 divided by `scales`.
pub(super) fn lower(op: &AttentionBackwardQ, [v_scales, dy_scales]: [Tensor; 2], cx: &Lower<'_>) -> Dispatch {
    let variant = variant(&op.of, cx.caps).expect("tiled for this device");
    let Attended { q, k, v, kv_heads, attend, spans, step_rows } = op.of;
    let Attend { mask, scale, softcap } = attend;
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let grid = Grid::Tiles { lead: q.shape, tile: QUERIES / (q.shape.heads / kv_heads), x: kv_heads };
    let [q, k, v, spans, step_rows] = [q, k, v, spans, step_rows].map(Into::into);
    let [v_scales, dy, dy_scales, stats, dq] = [v_scales, op.dy, dy_scales, op.stats, op.dq].map(Into::into);
    let bind = Bind { q, k, v, v_scales, dy, dy_scales, stats, spans, step_rows, dq };
    bind.dispatch(variant, params, grid)
}
