//! Product of many rows with a weight matrix through cooperative matrices (tensor cores).

use super::add::add_bias;
use super::matmul::{Matmul, Operand};
use super::row_scale::row_scale;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, parts};
use crate::record::Recorder;
use crate::tensor::{Shape, Tensor, Weight};

kernel! {
    MATMUL_COOP: "matmul_coop",
    entry: "matmul_coop",
    wgsl: ["matmul_coop.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
}

/// Results per side of a workgroup's square.
const TILE: u32 = 128;
/// Columns that are staged at once; rows are whole multiples of it.
pub const DEPTH: u32 = 32;

/// Whether rows of a weight can be staged.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(DEPTH)
}

/// y = x w^T in f16 with f32 sums, rows of `x` divided by `scales` on the way; as [`super::matmul()`] otherwise.
pub fn matmul_f16(rec: &mut Recorder, w: Weight, x: Tensor, scales: Tensor) -> Tensor {
    assert_eq!(x.shape.width(), w.cols, "matmul_f16: rows of {} with a weight of {} columns", x.shape.width(), w.cols);
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..x.shape });
    rec.push(Matmul { w, x, operand: Operand::F16 { scales }, exact: false, bias: None, y });
    y
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Matmul, scales: Tensor, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), scales: scales.into(), w, bias: op.bias.into(), y: op.y.into() };
        let (rows, row_count) = (op.x.shape.rows, range.len() as u32);
        let params = Params { k, n, rows, row_base: range.start, row_count, has_bias: u32::from(op.bias.is_some()) };
        bind.dispatch(params, Grid::Tiles { lead: op.x.shape, tile: TILE, x: row_count.div_ceil(TILE) })
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Every format, tile edges in all three dimensions, activations far outside the range of f16, weights in pieces.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[2, 16, 127, 128, 129, 300]), g.format());
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[1, 15, 16, 64, 127, 128, 129, 300]));
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, n, cols);
    let x = if g.coin() { case.uniform(g, cols, 1e6) } else { case.tensor(g, cols) };
    let bias = g.coin().then(|| case.vector(g, n));
    let scales = row_scale(&mut case.rec, x);
    let y = matmul_f16(&mut case.rec, w, x, scales);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
