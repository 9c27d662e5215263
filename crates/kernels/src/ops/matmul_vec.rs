//! Product of one row with a weight matrix.

use super::add::add_bias;
use super::matmul::{Matmul, matmul};
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, parts};
use crate::tensor::Weight;

kernel! {
    MATMUL_VEC: "matmul_vec",
    entry: "matmul_vec",
    wgsl: ["matmul_vec.wgsl", "shared/x4.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
}

// Row lengths that are no multiple of 4.
kernel! {
    MATMUL_VEC_TAIL: "matmul_vec_tail" = MATMUL_VEC with
    wgsl: ["matmul_vec.wgsl", "shared/x4_tail.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"]
}

/// Weight rows per workgroup.
const ROWS: u32 = 4;

/// The dispatches of a product whose activations have one row, one for each part of the weight.
pub fn lower(op: &Matmul, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let row_count = range.len() as u32;
        let grid = Grid::PerRow { lead: op.x.shape, per_row: row_count.div_ceil(ROWS) };
        let dispatch = bind.dispatch(Params { k, row_base: range.start, row_count, has_bias: u32::from(op.bias.is_some()) }, grid);
        if k % 4 == 0 { dispatch } else { Dispatch { row: &MATMUL_VEC_TAIL, ..dispatch } }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Every format, row counts at the workgroup's edges, row lengths that are no multiple of 4.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format();
    let (cols, n) = (g.cols(ty), g.dim());
    let mut case = Case::new(1);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
