//! Both products of a gated activation of a few rows, the activation and its packing, in one
//! kernel. The planner makes it; it is never recorded.
//!
//! A workgroup has 32 rows of each weight, because these are packed together, so there are few
//! workgroups. Where 64 or 32 threads read a row, several teams of them share the rows. 2 rows and
//! 8 rows of 1536 to 8960 take 12.0 and 21.0 us with one team of 64 threads, 10.1 and 17.3 with
//! two, 10.6 and 22.0 with four. 2 rows and 8 rows of 1024 to 3072 take 17.1 and 14.2 us with one
//! team of 64 threads, 5.3 and 6.3 with eight of 32. Teams of 128 threads lose: 8 rows of 4096 to
//! 12288 take 33.8 us with one and 43.8 with two.

use super::matmul_rows8::{many, steps, threads};
use super::matmul_vec_glu::MatmulGlu;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_ROWS8_GLU: "matmul_rows8_glu",
    wgsl: [
        "matmul/matmul_rows8_glu.wgsl", steps, threads, "matmul/pieces/rows8_sums.wgsl", "matmul/pieces/rows8_rows.wgsl", "shared/unit.wgsl", activation, "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, exchange: u32, many: u32 },
    constants: [many],
    bindings: Bind { x: Read, gate: Weight(Rows), up: Weight(Rows), packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 5664 },
    variants: {
        ROWS_2_SILU: "matmul_rows8_glu_2_silu" {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_2_SILU_MEDIUM: "matmul_rows8_glu_2_silu_medium" needs { threads: 128, workgroup_bytes: 4624 } {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_2_SILU_SHORT: "matmul_rows8_glu_2_silu_short" needs { threads: 256, workgroup_bytes: 7688 } {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_2_GELU: "matmul_rows8_glu_2_gelu" {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_2_GELU_MEDIUM: "matmul_rows8_glu_2_gelu_medium" needs { threads: 128, workgroup_bytes: 4624 } {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_2_GELU_SHORT: "matmul_rows8_glu_2_gelu_short" needs { threads: 256, workgroup_bytes: 7688 } {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_4_SILU: "matmul_rows8_glu_4_silu" needs { threads: 128, workgroup_bytes: 7744 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_4_SILU_MEDIUM: "matmul_rows8_glu_4_silu_medium" needs { threads: 128, workgroup_bytes: 5664 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_4_SILU_SHORT: "matmul_rows8_glu_4_silu_short" needs { threads: 256, workgroup_bytes: 8208 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_4_GELU: "matmul_rows8_glu_4_gelu" needs { threads: 128, workgroup_bytes: 7744 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_4_GELU_MEDIUM: "matmul_rows8_glu_4_gelu_medium" needs { threads: 128, workgroup_bytes: 5664 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_4_GELU_SHORT: "matmul_rows8_glu_4_gelu_short" needs { threads: 256, workgroup_bytes: 8208 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_8_SILU: "matmul_rows8_glu_8_silu" needs { threads: 128, workgroup_bytes: 11904 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_8_SILU_MEDIUM: "matmul_rows8_glu_8_silu_medium" needs { threads: 128, workgroup_bytes: 7744 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_8_SILU_SHORT: "matmul_rows8_glu_8_silu_short" needs { threads: 256, workgroup_bytes: 9248 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/silu4.wgsl"],
        },
        ROWS_8_GELU: "matmul_rows8_glu_8_gelu" needs { threads: 128, workgroup_bytes: 11904 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_8_GELU_MEDIUM: "matmul_rows8_glu_8_gelu_medium" needs { threads: 128, workgroup_bytes: 7744 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 2 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        ROWS_8_GELU_SHORT: "matmul_rows8_glu_8_gelu_short" needs { threads: 256, workgroup_bytes: 9248 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 8 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
    },
}

/// By rows of activations (2, 4 and 8), activation (silu and gelu) and threads that share a row of
/// weights (128, 64 and 32).
const VARIANTS: [[[&Variant; 3]; 2]; 3] = [
    [[&ROWS_2_SILU, &ROWS_2_SILU_MEDIUM, &ROWS_2_SILU_SHORT], [&ROWS_2_GELU, &ROWS_2_GELU_MEDIUM, &ROWS_2_GELU_SHORT]],
    [[&ROWS_4_SILU, &ROWS_4_SILU_MEDIUM, &ROWS_4_SILU_SHORT], [&ROWS_4_GELU, &ROWS_4_GELU_MEDIUM, &ROWS_4_GELU_SHORT]],
    [[&ROWS_8_SILU, &ROWS_8_SILU_MEDIUM, &ROWS_8_SILU_SHORT], [&ROWS_8_GELU, &ROWS_8_GELU_MEDIUM, &ROWS_8_GELU_SHORT]],
];

/// The dispatch of this kernel.
pub(crate) fn lower(op: &MatmulGlu, cx: &Lower<'_>) -> Dispatch {
    let (w, rows) = (op.gate.w, op.gate.x.shape.rows);
    let steps = steps(rows);
    let bind = Bind { x: op.gate.x.into(), gate: w.into(), up: op.up.w.into(), packed: op.packed.into() };
    let params = Params { k: w.cols, n: w.rows, rows, exchange: cx.caps.subgroup_size, many: many(rows, w) };
    let grid = Grid::PerRow { lead: fixed(1, 1), per_row: w.rows / BLOCK * rows.div_ceil(steps) };
    bind.dispatch(VARIANTS[steps.ilog2() as usize - 1][usize::from(op.gelu)][threads(w.cols)], params, grid)
}
