//! Product of a few rows of 8-bit activations with a quantized weight matrix.

use super::add::add_bias;
use super::matmul::Matmul;
use super::matmul_vec_q8::matmul_q8;
use super::pack_q8::pack_q8;
use super::rms_norm;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, fixed, parts};
use crate::row::Row;
use crate::tensor::Weight;

kernel! {
    MATMUL_FEW_Q8_2: "matmul_few_q8_2",
    entry: "matmul_few_q8",
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, tile: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Rows, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
}

kernel! {
    MATMUL_FEW_Q8_4: "matmul_few_q8_4" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_8: "matmul_few_q8_8" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_2_SHORT: "matmul_few_q8_2_short" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_32.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_4_SHORT: "matmul_few_q8_4_short" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_32.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_8_SHORT: "matmul_few_q8_8_short" = MATMUL_FEW_Q8_2 with
    wgsl: [
        "matmul_few_q8.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_32.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// By powers of two of rows of activations: 2, 4 and 8.
const ROWS: [[&Row; 2]; 3] =
    [[&MATMUL_FEW_Q8_2, &MATMUL_FEW_Q8_2_SHORT], [&MATMUL_FEW_Q8_4, &MATMUL_FEW_Q8_4_SHORT], [&MATMUL_FEW_Q8_8, &MATMUL_FEW_Q8_8_SHORT]];
/// Columns up to which one subgroup of 32 lanes reads a row of weights, a block of 32 each.
pub(super) const SHORT: u32 = 1024;
/// Workgroups that a large device should have, by powers of two of rows of activations: for 8 as many as it holds at once, three of 128 threads to a
/// multiprocessor, so that the activations are loaded as seldom as can be; for fewer rows twice as many. NVIDIA H200, Q4_K, tiles of 12, 8
/// and 16 rows of weights: 4096 to 4096 by 8 rows 10.2, 12.3 and 11.1 us; 12288 to 4096 by 2 rows of tiles of 8 and 16 17.1 and 24.7.
const WORKGROUPS: [u32; 3] = [768, 768, 384];
/// Rows of weights per workgroup, at most.
const TILE: u32 = 32;

/// Rows of activations that a workgroup takes where a step has `rows`.
pub(super) fn steps(rows: u32) -> u32 {
    rows.next_power_of_two().clamp(2, 8)
}

/// Rows of weights that a workgroup takes, of so many, in fours, with `steps` rows of activations.
pub(super) fn tile(rows: u32, steps: u32) -> u32 {
    rows.div_ceil(4 * WORKGROUPS[steps.ilog2() as usize - 1]).clamp(1, TILE / 4) * 4
}

/// The dispatches of a product with a few rows of packed activations, one for each part of the weight.
pub fn lower(op: &Matmul, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let rows = op.x.shape.rows;
    let steps = steps(rows);
    let row = ROWS[steps.ilog2() as usize - 1][usize::from(k <= SHORT)];
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let (row_count, has_bias) = (range.len() as u32, u32::from(op.bias.is_some()));
        let tile = tile(row_count, steps);
        let params = Params { k, n, rows, row_base: range.start, row_count, has_bias, tile, exchange: cx.caps.subgroup_size };
        // Rows past the step are multiplied too: what they hold is nobody's.
        let per_row = row_count.div_ceil(tile) * rows.div_ceil(steps);
        Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row }) }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// Every format with units, rows at the workgroup's edges on both sides, columns of one subgroup's lanes, of four's, and of more; weights of so many
/// rows that a workgroup takes more than four, and all that it can; blocks of zeros, and activations whose norm's factor is left to the product.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(|f| f.units.is_some()), g.pick(&[2, 2, 3, 4, 4, 4, 5, 8, 9, 17]));
    let cols = g.cols(ty) + g.pick(&[0, 0, SHORT, 4 * SHORT]);
    let most = if cols > 64 { 1 } else { (TILE - 4) * WORKGROUPS[2] + 1 };
    let n = if cols < 512 { g.pick(&[1, 2 * 4 * WORKGROUPS[2] + 3, most]) } else { g.dim() };
    let mut case = Case::perhaps_full(g, rows);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let x = if n > 31 && g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let bias = g.coin().then(|| case.vector(g, n));
    let packed = pack_q8(&mut case.rec, x);
    let y = matmul_q8(&mut case.rec, w, packed);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
