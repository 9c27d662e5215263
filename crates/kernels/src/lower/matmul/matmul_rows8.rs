//! Product of 8-bit activations with a quantized weight matrix, up to 8 rows of activations to a workgroup.

use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, fixed};
use crate::kernel::split::parts;
use crate::lower::matmul::product::Product;

kernel! {
    MATMUL_ROWS8: "matmul_rows8",
    wgsl: [
        "matmul/matmul_rows8.wgsl", steps, "matmul/pieces/rows8_sums.wgsl", threads, "shared/unit.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, tile: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Rows, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 3104 },
    variants: {
        // Threads of a workgroup, with blocks of 32 columns at once; fewer for few columns.
        ROWS_2: "matmul_rows8_2" { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { WG: 128 } },
        ROWS_4: "matmul_rows8_4" needs { threads: 128, workgroup_bytes: 4160 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { WG: 128 },
        },
        ROWS_8: "matmul_rows8_8" needs { threads: 128, workgroup_bytes: 6272 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { WG: 128 },
        },
        ROWS_2_SHORT: "matmul_rows8_2_short" needs { threads: 32, workgroup_bytes: 776 } {
            steps: choose ["matmul/pieces/rows8_steps_2.wgsl"],
            threads: vary { WG: 32 },
        },
        ROWS_4_SHORT: "matmul_rows8_4_short" needs { threads: 32, workgroup_bytes: 1040 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { WG: 32 },
        },
        ROWS_8_SHORT: "matmul_rows8_8_short" needs { threads: 32, workgroup_bytes: 1568 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { WG: 32 },
        },
    },
}

/// By powers of two of rows of activations: 2, 4 and 8.
const VARIANTS: [[&Variant; 2]; 3] = [[&ROWS_2, &ROWS_2_SHORT], [&ROWS_4, &ROWS_4_SHORT], [&ROWS_8, &ROWS_8_SHORT]];

/// Columns up to which one subgroup of 32 lanes reads a row of weights, a block of 32 each.
pub(crate) const SHORT: u32 = 1024;

/// Workgroups to each that a device runs side by side, by powers of two of rows of activations: for 8 as many as it holds at once, three of 128 threads to a
/// multiprocessor, so that the activations are loaded as seldom as can be; for fewer rows twice as many. NVIDIA H200, Q4_K, tiles of 12, 8
/// and 16 rows of weights: 4096 to 4096 by 8 rows 10.2, 12.3 and 11.1 us; 12288 to 4096 by 2 rows of tiles of 8 and 16 17.1 and 24.7.
pub(crate) const WORKGROUPS: [u32; 3] = [6, 6, 3];

/// Rows of weights per workgroup, at most.
pub(crate) const TILE: u32 = 32;

/// Rows of activations that a workgroup takes where a step has `rows`.
pub(crate) fn steps(rows: u32) -> u32 {
    rows.next_power_of_two().clamp(2, 8)
}

/// Rows of weights that a workgroup takes, of so many, in fours, with `steps` rows of activations.
pub(crate) fn tile(rows: u32, steps: u32, caps: &Caps) -> u32 {
    rows.div_ceil(4 * caps.table.workgroups * WORKGROUPS[steps.ilog2() as usize - 1]).clamp(1, TILE / 4) * 4
}

/// The dispatches of a product with a few rows of packed activations, one for each part of the weight.
pub fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let rows = op.x.shape.rows;
    let steps = steps(rows);
    let variant = VARIANTS[steps.ilog2() as usize - 1][usize::from(k <= SHORT)];
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let (row_count, has_bias) = (range.len() as u32, u32::from(op.bias.is_some()));
        let tile = tile(row_count, steps, cx.caps);
        let params = Params { k, n, rows, row_base: range.start, row_count, has_bias, tile, exchange: cx.caps.subgroup_size };
        // Rows past the step are multiplied too: what they hold is nobody's.
        let per_row = row_count.div_ceil(tile) * rows.div_ceil(steps);
        bind.dispatch(variant, params, Grid::PerRow { lead: fixed(1, 1), per_row })
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
