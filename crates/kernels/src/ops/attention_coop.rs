//! Attention of many rows through cooperative matrices (tensor cores).

use super::attention::{Attention, Drawn, appended_as};
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, PlanOptions};
use crate::row::Row;
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_COOP_64: "attention_coop_64",
    entry: "attention_coop",
    wgsl: [
        "attention_coop.wgsl", "shared/coop_head_64.wgsl", "shared/coop_bands.wgsl", "shared/coop_keys.wgsl", "shared/coop_scores.wgsl"
    ],
    params: Params {
        heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-5,
}

kernel! {
    ATTENTION_COOP_128: "attention_coop_128" = ATTENTION_COOP_64 with
    wgsl: [
        "attention_coop.wgsl", "shared/coop_head_128.wgsl", "shared/coop_bands.wgsl", "shared/coop_keys.wgsl", "shared/coop_scores.wgsl"
    ]
}

kernel! {
    ATTENTION_COOP_256: "attention_coop_256" = ATTENTION_COOP_64 with
    wgsl: [
        "attention_coop.wgsl", "shared/coop_head_256.wgsl", "shared/coop_bands.wgsl", "shared/coop_keys.wgsl", "shared/coop_scores.wgsl"
    ]
}

kernel! {
    ATTENTION_COOP_512: "attention_coop_512" = ATTENTION_COOP_64 with
    wgsl: [
        "attention_coop.wgsl", "shared/coop_head_512.wgsl", "shared/coop_bands.wgsl", "shared/coop_keys.wgsl", "shared/coop_scores.wgsl"
    ]
}

/// The row for heads of one length, and what its piece says.
struct Tile {
    head: u32,
    /// Queries of a workgroup: rows of the step by the heads that share a kv head.
    queries: u32,
    row: &'static Row,
}

static TILES: [Tile; 4] = [
    Tile { head: 64, queries: 64, row: &ATTENTION_COOP_64 },
    Tile { head: 128, queries: 64, row: &ATTENTION_COOP_128 },
    Tile { head: 256, queries: 64, row: &ATTENTION_COOP_256 },
    Tile { head: 512, queries: 64, row: &ATTENTION_COOP_512 },
];

/// Rows from which tiles are filled well enough.
const ROWS: u32 = 16;

/// The dispatch, where the device, the plan and the shape allow rounding to f16.
pub(crate) fn lower(op: &Attention, cx: &Lower<'_>) -> Option<Dispatch> {
    let shape = op.q.shape;
    let group = shape.heads / op.kv_heads;
    let tile = TILES.iter().find(|t| t.head == shape.dim && group <= t.queries && t.row.fits(cx.caps))?;
    if !cx.fast || shape.rows < ROWS {
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
    let grid = Grid::Tiles { lead: shape, tile: tile.queries / group, x: op.kv_heads };
    Some(Dispatch { row: tile.row, ..bind.dispatch(params, grid) })
}

/// Tiles partly filled, by rows and by heads that do not divide them, of one sequence and of two, every mask, softcaps, every KV type.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let head = g.pick(&[64, 128, 256, 512]);
    let (rows, group) = g.pick(&[(64, 7), (65, 2), (65, 3), (65, 8), (66, 16), (67, 4), (68, 1), (130, 1), (130, 4), (260, 1), (260, 2)]);
    let mut case = appended_as(g, Drawn { ty, rows, dim: head, group: Some(group), ..Drawn::default() });
    case.options = PlanOptions { fast: true, ..case.options };
    case
}

#[cfg(test)]
mod tests {
    use super::TILES;

    #[test]
    fn tiles_say_what_their_pieces_say() {
        for tile in &TILES {
            let text: String = tile.row.wgsl.iter().map(|(_, text)| *text).collect();
            for (name, value) in [("HEAD", tile.head), ("ROWS", tile.queries)] {
                assert!(text.contains(&format!("const {name} = {value}u;")), "{}: {name} is not {value}", tile.row.name);
            }
        }
    }
}
