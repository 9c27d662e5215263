//! Product of a few rows of 8-bit activations with a quantized weight matrix.

use super::add::add_bias;
use super::matmul::Matmul;
use super::matmul_vec_q8::matmul_q8;
use super::pack_q8::pack_q8;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, fixed, parts};
use crate::row::Row;
use crate::tensor::Weight;

kernel! {
    MATMUL_FEW_Q8_2: "matmul_few_q8_2",
    entry: "matmul_few_q8",
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_2.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Units, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
}

kernel! {
    MATMUL_FEW_Q8_4: "matmul_few_q8_4" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_4.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_8: "matmul_few_q8_8" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_8.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ]
}

/// Weight rows per workgroup.
const ROWS: u32 = 4;

/// The row for so many rows of activations, and how many of them a workgroup takes.
fn row(rows: u32) -> (&'static Row, u32) {
    match rows {
        ..=2 => (&MATMUL_FEW_Q8_2, 2),
        3..=4 => (&MATMUL_FEW_Q8_4, 4),
        _ => (&MATMUL_FEW_Q8_8, 8),
    }
}

/// The dispatches of a product with a few rows of packed activations, one for each part of the weight.
pub fn lower(op: &Matmul, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let rows = op.x.shape.rows;
    let (row, steps) = row(rows);
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let (row_count, has_bias) = (range.len() as u32, u32::from(op.bias.is_some()));
        let params = Params { k, n, rows, row_base: range.start, row_count, has_bias, exchange: cx.caps.subgroup_size };
        // Rows past the step are multiplied too: what they hold is nobody's.
        let per_row = row_count.div_ceil(ROWS) * rows.div_ceil(steps);
        Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row }) }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Every format with units, rows at the workgroup's edges on both sides, blocks of zeros.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(|f| f.units.is_some()), g.pick(&[2, 3, 4, 5, 7, 8, 9, 17]));
    let (cols, n) = (g.cols(ty), g.dim());
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let bias = g.coin().then(|| case.vector(g, n));
    let packed = pack_q8(&mut case.rec, x);
    let y = matmul_q8(&mut case.rec, w, packed);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
