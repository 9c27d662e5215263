//! Product of many rows with a weight matrix through cooperative matrices (tensor cores).

use super::add::add_bias;
use super::matmul::{Matmul, matmul};
use crate::format;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, PlanOptions, parts};
use crate::tensor::{Tensor, Weight};

kernel! {
    MATMUL_COOP: "matmul_coop",
    entry: "matmul_coop",
    wgsl: ["matmul_coop.wgsl", "shared/coop_quads.wgsl", "shared/coop_end.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

kernel! {
    MATMUL_COOP_GROUPS: "matmul_coop_groups",
    entry: "matmul_coop",
    wgsl: ["matmul_coop.wgsl", "shared/unit.wgsl", "shared/coop_groups.wgsl", "shared/coop_ahead.wgsl", "shared/coop_end_quads.wgsl"],
    params: GroupsParams { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: GroupsBind { x: Read, scales: Read, w: Groups, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

// Results that are not whole quads.
kernel! {
    MATMUL_COOP_GROUPS_TAIL: "matmul_coop_groups_tail" = MATMUL_COOP_GROUPS with
    wgsl: ["matmul_coop.wgsl", "shared/unit.wgsl", "shared/coop_groups.wgsl", "shared/coop_ahead.wgsl", "shared/coop_end.wgsl"]
}

/// Results per side of a workgroup's square.
pub(super) const TILE: u32 = 128;
/// Columns that are staged at once; rows are whole multiples of it.
pub const DEPTH: u32 = 32;

/// Whether rows of a weight can be staged.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(DEPTH)
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Matmul, scales: Tensor, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let in_groups = format::format(ty).is_some_and(|f| f.units.is_some());
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let (x, scales, w, bias, y) = (op.x.into(), scales.into(), Arg::Weight(op.w, part as u32), op.bias.into(), op.y.into());
        let (rows, row_base, row_count, has_bias) = (op.x.shape.rows, range.start, range.len() as u32, u32::from(op.bias.is_some()));
        let in_quads = [n, row_base, row_count].iter().all(|rows| rows.is_multiple_of(4));
        let grid = Grid::Tiles { lead: op.x.shape, tile: TILE, x: row_count.div_ceil(TILE) };
        match in_groups {
            true => {
                let params = GroupsParams { k, n, rows, row_base, row_count, has_bias };
                let dispatch = GroupsBind { x, scales, w, bias, y }.dispatch(params, grid);
                if in_quads { dispatch } else { Dispatch { row: &MATMUL_COOP_GROUPS_TAIL, ..dispatch } }
            }
            false => Bind { x, scales, w, bias, y }.dispatch(Params { k, n, rows, row_base, row_count, has_bias }, grid),
        }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Every format, tile edges in all three dimensions, activations far outside the range of f16, weights in pieces; as the planner makes it of a
/// plain product, of more rows than go in 8 bits. A single row of weights never meets activations that are all alike: its sum may be next to nothing.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[33, 64, 127, 128, 129, 300]), g.format());
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[1, 15, 16, 64, 127, 128, 129, 300]));
    let mut case = Case::new(rows);
    case.options = PlanOptions { fast: true, ..case.options };
    let w = case.weight(g, ty, n, cols);
    let x = if g.coin() || n == 1 { case.uniform(g, cols, 1e6) } else { case.tensor(g, cols) };
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
