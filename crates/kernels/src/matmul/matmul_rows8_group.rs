//! Up to three products of a few rows of 8-bit activations in one kernel. The planner makes it; it
//! is never recorded.

use super::matmul_rows8::{many, steps, threads, tile};
use super::matmul_vec_group::MatmulGroup;
use super::product::Product;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, fixed};

kernel! {
    MATMUL_ROWS8_GROUP: "matmul_rows8_group",
    wgsl: [
        "matmul/matmul_rows8_group.wgsl", steps, threads, "matmul/pieces/rows8_sums.wgsl", "matmul/pieces/rows8_rows.wgsl", "shared/unit.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, tile: u32, exchange: u32, many: u32 },
    constants: [many],
    bindings: Bind {
        x: Read, wa: Weight(Rows), wb: Weight(Rows), wc: Weight(Rows), bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 3104 },
    variants: {
        ROWS_2: "matmul_rows8_group_2" { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_2_MEDIUM: "matmul_rows8_group_2_medium" needs { threads: 64, workgroup_bytes: 1552 } { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_2_SHORT: "matmul_rows8_group_2_short" needs { threads: 32, workgroup_bytes: 776 } { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
        ROWS_4: "matmul_rows8_group_4" needs { threads: 128, workgroup_bytes: 4160 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_4_MEDIUM: "matmul_rows8_group_4_medium" needs { threads: 64, workgroup_bytes: 2080 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_4_SHORT: "matmul_rows8_group_4_short" needs { threads: 32, workgroup_bytes: 1040 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
        ROWS_8: "matmul_rows8_group_8" needs { threads: 128, workgroup_bytes: 6272 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_8_MEDIUM: "matmul_rows8_group_8_medium" needs { threads: 64, workgroup_bytes: 3136 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_8_SHORT: "matmul_rows8_group_8_short" needs { threads: 32, workgroup_bytes: 1568 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
    },
}

/// By rows of activations (2, 4 and 8) and threads (128, 64 and 32).
const VARIANTS: [[&Variant; 3]; 3] = [
    [&ROWS_2, &ROWS_2_MEDIUM, &ROWS_2_SHORT],
    [&ROWS_4, &ROWS_4_MEDIUM, &ROWS_4_SHORT],
    [&ROWS_8, &ROWS_8_MEDIUM, &ROWS_8_SHORT],
];

/// The dispatch of this kernel.
pub(crate) fn lower(op: &MatmulGroup, cx: &Lower<'_>) -> Dispatch {
    let [a, b] = [&op.products[0], &op.products[1]];
    let c = op.products.get(2);
    let of_w = |product: &Product| product.w.rows;
    let rows = a.x.shape.rows;
    let steps = steps(rows);
    let tile = tile(op.products.iter().map(of_w).sum(), a.w.cols, steps, cx.caps);
    let params = Params {
        k: a.w.cols,
        rows,
        rows_a: of_w(a),
        rows_b: of_w(b),
        rows_c: c.map_or(0, of_w),
        biases: op.biases(),
        tile,
        exchange: cx.caps.subgroup_size,
        // The first weight decides for all: they have the same columns.
        many: many(rows, a.w),
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
    // Rows past the step are multiplied too. Their results are never read.
    let tiles: u32 = op.products.iter().map(|product| of_w(product).div_ceil(tile)).sum();
    let grid = Grid::PerRow { lead: fixed(1, 1), per_row: tiles * rows.div_ceil(steps) };
    bind.dispatch(VARIANTS[steps.ilog2() as usize - 1][threads(a.w.cols)], params, grid)
}
