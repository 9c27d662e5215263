//! Attention of many rows through cooperative matrices (tensor cores).

use super::attention::{Attention, appended_as};
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, PlanOptions};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_COOP: "attention_coop",
    entry: "attention_coop",
    wgsl: ["attention_coop.wgsl", "shared/coop_keys.wgsl", "shared/coop_scores.wgsl"],
    params: Params { heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-5,
}

/// Rows of a workgroup.
const TILE: u32 = 64;
/// The head that the kernel is written for.
const HEAD_DIM: u32 = 128;
/// Rows from which a tile is filled well enough.
const ROWS: u32 = 16;

/// The dispatch, where the device, the plan and the shape allow rounding to f16.
pub(crate) fn lower(op: &Attention, cx: &Lower<'_>) -> Option<Dispatch> {
    let shape = op.q.shape;
    if !(cx.fast && cx.caps.cooperative) || shape.dim != HEAD_DIM || shape.rows < ROWS {
        return None;
    }
    let params = Params {
        heads: shape.heads,
        kv_heads: op.kv_heads,
        rows: shape.rows,
        capacity: 0,
        causal: u32::from(op.attend.mask != Mask::Bidirectional),
        window: if let Mask::Window(n) = op.attend.mask { n as u32 } else { 0 },
        scale: op.attend.scale,
        softcap: op.attend.softcap.unwrap_or(0.0),
    };
    let bind = Bind {
        q: op.q.into(),
        positions: op.positions.into(),
        ends: op.ends.into(),
        sequences: op.sequences.into(),
        k_state: op.kv.k.into(),
        v_state: op.kv.v.into(),
        y: op.y.into(),
    };
    Some(bind.dispatch(params, Grid::Tiles { lead: shape, tile: TILE, x: shape.heads }))
}

/// Tiles partly filled, of one sequence and of two, every mask, softcaps, every KV type.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let rows = g.pick(&[16, 63, 64, 65, 130, 260]);
    let mut case = appended_as(g, ty, None, rows, HEAD_DIM, false);
    case.options = PlanOptions { fast: true, ..case.options };
    case
}
