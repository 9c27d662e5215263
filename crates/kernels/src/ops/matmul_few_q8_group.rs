//! Up to three products of a few rows of 8-bit activations in one kernel. Made by the planner, never recorded.

use super::matmul::Matmul;
use super::matmul_few_q8::{steps, tile};
use super::matmul_vec_group::MatmulGroup;
use super::matmul_vec_q8::matmul_q8;
use super::{add_bias, pack_q8, rms_norm};
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, fixed};
use crate::row::Row;

kernel! {
    MATMUL_FEW_Q8_GROUP_2: "matmul_few_q8_group_2",
    entry: "matmul_few_q8_group",
    wgsl: [
        "matmul_few_q8_group.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, tile: u32, exchange: u32 },
    bindings: Bind {
        x: Read, wa: Rows, wb: Rows, wc: Rows, bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
}

kernel! {
    MATMUL_FEW_Q8_GROUP_4: "matmul_few_q8_group_4" = MATMUL_FEW_Q8_GROUP_2 with
    wgsl: [
        "matmul_few_q8_group.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GROUP_8: "matmul_few_q8_group_8" = MATMUL_FEW_Q8_GROUP_2 with
    wgsl: [
        "matmul_few_q8_group.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// By powers of two of rows of activations: 2, 4 and 8.
const ROWS: [&Row; 3] = [&MATMUL_FEW_Q8_GROUP_2, &MATMUL_FEW_Q8_GROUP_4, &MATMUL_FEW_Q8_GROUP_8];

/// Its dispatch.
pub(super) fn lower(op: &MatmulGroup, cx: &Lower<'_>) -> Dispatch {
    let [a, b] = [&op.products[0], &op.products[1]];
    let c = op.products.get(2);
    let of_w = |product: &Matmul| product.w.rows;
    let rows = a.x.shape.rows;
    let steps = steps(rows);
    let tile = tile(op.products.iter().map(of_w).sum(), steps);
    let params = Params {
        k: a.w.cols,
        rows,
        rows_a: of_w(a),
        rows_b: of_w(b),
        rows_c: c.map_or(0, of_w),
        biases: op.biases(),
        tile,
        exchange: cx.caps.subgroup_size,
    };
    let bind = Bind {
        x: a.x.into(),
        wa: a.w.into(),
        wb: b.w.into(),
        wc: c.unwrap_or(b).w.into(),
        bias_a: a.bias.into(),
        bias_b: b.bias.into(),
        bias_c: c.and_then(|product| product.bias).into(),
        ya: a.y.into(),
        yb: b.y.into(),
        yc: c.map_or(Arg::Spare, |product| product.y.into()),
    };
    // Rows past the step are multiplied too: what they hold is nobody's.
    let tiles: u32 = op.products.iter().map(|product| of_w(product).div_ceil(tile)).sum();
    let grid = Grid::PerRow { lead: fixed(1, 1), per_row: tiles * rows.div_ceil(steps) };
    Dispatch { row: ROWS[steps.ilog2() as usize - 1], ..bind.dispatch(params, grid) }
}

/// Two and three products of a few rows, of formats of their own, odd and even numbers of rows, of few columns so many that a workgroup meets more
/// than one four of them, columns that go round the lanes more than once, rows behind whose last scale the next begins, with and without biases and a
/// norm whose factor is left to them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(|f| f.units.is_some()), g.pick(&[2, 2, 4, 4, 5, 8, 9]));
    let (superblocks, most) = g.pick(&[(5, 3 * 1025), (8, 1025), (24, 257)]);
    let cols = 256 * superblocks;
    let mut case = Case::perhaps_full(g, rows);
    let x = case.tensor(g, cols);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let packed = pack_q8(&mut case.rec, x);
    for n in 0..g.pick(&[2, 3, 3]) {
        let ty = if n == 0 { ty } else { g.format_with(|f| f.units.is_some()) };
        let n = g.pick(&[2, 3, 31, 64, most, most]);
        let w = case.weight(g, ty, n, cols);
        let bias = g.coin().then(|| case.vector(g, n));
        let y = matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
