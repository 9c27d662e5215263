//! Both products of a gated activation of a few rows, the activation and its packing in one kernel. Made by the planner, never recorded.

use super::matmul_few_q8::steps;
use super::matmul_vec_glu::MatmulGlu;
use super::matmul_vec_q8::matmul_q8;
use super::pack_q8::BLOCK;
use super::{geglu, pack_q8, rms_norm, swiglu};
use crate::compare::Compare;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, fixed};
use crate::row::Row;

kernel! {
    MATMUL_FEW_Q8_GLU_2_SILU: "matmul_few_q8_glu_2_silu",
    entry: "matmul_few_q8_glu",
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, exchange: u32 },
    bindings: Bind { x: Read, gate: Rows, up: Rows, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-4,
}

kernel! {
    MATMUL_FEW_Q8_GLU_2_GELU: "matmul_few_q8_glu_2_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_2.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_4_SILU: "matmul_few_q8_glu_4_silu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_4_GELU: "matmul_few_q8_glu_4_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_4.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_8_SILU: "matmul_few_q8_glu_8_silu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_FEW_Q8_GLU_8_GELU: "matmul_few_q8_glu_8_gelu" = MATMUL_FEW_Q8_GLU_2_SILU with
    wgsl: [
        "matmul_few_q8_glu.wgsl", "shared/few_steps_8.wgsl", "shared/few_rows.wgsl", "shared/few_lanes_128.wgsl", "shared/unit.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// By powers of two of rows of activations: 2, 4 and 8; with silu and gelu.
const ROWS: [[&Row; 2]; 3] = [
    [&MATMUL_FEW_Q8_GLU_2_SILU, &MATMUL_FEW_Q8_GLU_2_GELU],
    [&MATMUL_FEW_Q8_GLU_4_SILU, &MATMUL_FEW_Q8_GLU_4_GELU],
    [&MATMUL_FEW_Q8_GLU_8_SILU, &MATMUL_FEW_Q8_GLU_8_GELU],
];

/// Its dispatch.
pub(super) fn lower(op: &MatmulGlu, cx: &Lower<'_>) -> Dispatch {
    let (w, rows) = (op.gate.w, op.gate.x.shape.rows);
    let steps = steps(rows);
    let bind = Bind { x: op.gate.x.into(), gate: w.into(), up: op.up.w.into(), packed: op.packed.into() };
    let params = Params { k: w.cols, n: w.rows, rows, exchange: cx.caps.subgroup_size };
    let grid = Grid::PerRow { lead: fixed(1, 1), per_row: w.rows / BLOCK * rows.div_ceil(steps) };
    Dispatch { row: ROWS[steps.ilog2() as usize - 1][usize::from(op.gelu)], ..bind.dispatch(params, grid) }
}

/// The parts as a model records them, for both activations, with and without a norm whose factor is left to them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(|f| f.units.is_some()), g.pick(&[2, 2, 4, 4, 5, 8, 9]));
    let (cols, n) = (256 * g.pick(&[5, 6, 17]), BLOCK * g.pick(&[1, 2, 3, 7]));
    let mut case = Case::perhaps_full(g, rows);
    let x = case.tensor(g, cols);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let packed = pack_q8(&mut case.rec, x);
    let [gate, up] = [0, 1].map(|_| {
        let w = case.weight(g, ty, n, cols);
        matmul_q8(&mut case.rec, w, packed)
    });
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect_as(packed, Compare::Packed { k: n });
    case
}
