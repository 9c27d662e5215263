//! Derivatives of attention by its keys and values, of many rows, through cooperative matrices
//! (tensor cores).

use super::attention::Attend;
use super::attention_backward_kv::AttentionBackwardKv;
use super::attention_lse::Attended;
use super::fused::window;
use super::tile32::{self, ByHead};
use crate::caps::Caps;
use crate::graph::tensor::Tensor;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use cpu_ref::Mask;

kernel! {
    ATTENTION_BACKWARD_KV_FLASH: "attention_backward_kv_flash",
    wgsl: [
        "attention/attention_backward_kv_flash.wgsl", head, "attention/pieces/tile32_rows.wgsl",
        "attention/pieces/tile32_scores.wgsl", "attention/pieces/tile32_slopes.wgsl", "attention/pieces/span_of_row.wgsl",
        "attention/pieces/score_slope.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind {
        q: Read, k: Read, v: Read, v_scales: Read, dy: Read, dy_scales: Read, stats: Read, spans: Read, step_rows: Read, dk: Write, dv: Write,
    },
    cpu: cpu_ref::attention_backward_kv,
    // f32 before a weight or a derivative by a score is rounded to f16 may decide it either way.
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 32768 },
    variants: {
        // Elements of a head, and the elements that are staged together.
        HEAD_64: "attention_backward_kv_flash_64" { head: vary { HEAD: 64, SLICE: 64 } },
        HEAD_128: "attention_backward_kv_flash_128" needs { threads: 256, workgroup_bytes: 49152 } { head: vary { HEAD: 128, SLICE: 128 } },
        HEAD_256: "attention_backward_kv_flash_256" needs { threads: 256, workgroup_bytes: 49152 } { head: vary { HEAD: 256, SLICE: 128 } },
        HEAD_512: "attention_backward_kv_flash_512" needs { threads: 256, workgroup_bytes: 49152 } { head: vary { HEAD: 512, SLICE: 128 } },
    },
}

static BY_HEAD: ByHead = [(64, &HEAD_64), (128, &HEAD_128), (256, &HEAD_256), (512, &HEAD_512)];

/// Keys of a workgroup.
const KEYS: u32 = 32;

/// The variant that takes the operation on this device, if any does.
pub(crate) fn variant(of: &Attended, caps: &Caps) -> Option<&'static Variant> {
    tile32::variant(of, &BY_HEAD, caps)
}

/// The operation's dispatch, with `v` and `dy` in f16 divided by `scales`.
pub(super) fn lower(op: &AttentionBackwardKv, [v_scales, dy_scales]: [Tensor; 2], cx: &Lower<'_>) -> Dispatch {
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
    let grid = Grid::Tiles { lead: k.shape, tile: KEYS, x: kv_heads };
    let [q, k, v, spans, step_rows] = [q, k, v, spans, step_rows].map(Into::into);
    let [v_scales, dy, dy_scales, stats, dk, dv] = [v_scales, op.dy, dy_scales, op.stats, op.dk, op.dv].map(Into::into);
    let bind = Bind { q, k, v, v_scales, dy, dy_scales, stats, spans, step_rows, dk, dv };
    bind.dispatch(variant, params, grid)
}
