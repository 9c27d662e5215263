//! The log-sum-exp of attention's scores, of many rows, through cooperative matrices (tensor
//! cores).

use super::attention::Attend;
use super::attention_lse::{Attended, AttentionLse};
use super::fused::window;
use super::tile32::{self, ByHead, QUERIES};
use crate::caps::Caps;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower};
use cpu_ref::Mask;

kernel! {
    ATTENTION_LSE_FLASH: "attention_lse_flash",
    wgsl: [
        "attention/attention_lse_flash.wgsl", head, "attention/pieces/tile32_rows.wgsl", "attention/pieces/tile32_scores.wgsl",
        "attention/pieces/span_of_row.wgsl", "attention/pieces/score_slope.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind { q: Read, k: Read, spans: Read, step_rows: Read, y: Write },
    cpu: cpu_ref::attention_lse,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 22528 },
    variants: {
        // Elements of a head, and the elements that are staged together.
        HEAD_64: "attention_lse_flash_64" { head: vary { HEAD: 64, SLICE: 64 } },
        HEAD_128: "attention_lse_flash_128" needs { threads: 256, workgroup_bytes: 34816 } { head: vary { HEAD: 128, SLICE: 128 } },
        HEAD_256: "attention_lse_flash_256" needs { threads: 256, workgroup_bytes: 34816 } { head: vary { HEAD: 256, SLICE: 128 } },
        HEAD_512: "attention_lse_flash_512" needs { threads: 256, workgroup_bytes: 34816 } { head: vary { HEAD: 512, SLICE: 128 } },
    },
}

static BY_HEAD: ByHead = [(64, &HEAD_64), (128, &HEAD_128), (256, &HEAD_256), (512, &HEAD_512)];

/// The variant that takes the operation on this device, if any does.
pub(crate) fn variant(of: &Attended, caps: &Caps) -> Option<&'static Variant> {
    tile32::variant(of, &BY_HEAD, caps)
}

/// The operation's dispatch.
pub(super) fn lower(op: &AttentionLse, cx: &Lower<'_>) -> Dispatch {
    let variant = variant(&op.of, cx.caps).expect("tiled for this device");
    let Attended { q, k, v: _, kv_heads, attend, spans, step_rows } = op.of;
    let Attend { mask, scale, softcap } = attend;
    let params = Params {
        heads: q.shape.heads,
        kv_heads,
        causal: u32::from(mask != Mask::Bidirectional),
        window: window(mask),
        scale,
        softcap: softcap.unwrap_or(0.0),
    };
    let bind = Bind { q: q.into(), k: k.into(), spans: spans.into(), step_rows: step_rows.into(), y: op.y.into() };
    let grid = Grid::Tiles { lead: q.shape, tile: QUERIES / (q.shape.heads / kv_heads), x: kv_heads };
    bind.dispatch(variant, params, grid)
}
