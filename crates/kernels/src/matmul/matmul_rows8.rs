//! Product of 8-bit activations with a quantized weight matrix, up to 8 rows of activations to a
//! workgroup.

use super::problem::Part;
use crate::caps::Caps;
use crate::caps::table::measured::{ROWS8_COLUMNS, ROWS8_MORE_WORKGROUPS, ROWS8_WORKGROUPS};
use crate::graph::tensor::Weight;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, fixed};
use crate::kernel::format::{Format, format};

kernel! {
    MATMUL_ROWS8: "matmul_rows8",
    wgsl: [
        "matmul/matmul_rows8.wgsl", steps, "matmul/pieces/rows8_sums.wgsl", "matmul/pieces/rows8_rows.wgsl", threads, "shared/unit.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, tile: u32, exchange: u32, many: u32 },
    constants: [many],
    bindings: Bind { x: Read, w: Weight(Rows), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 3104 },
    variants: {
        // Threads of a workgroup; each takes blocks of 32 columns. Short rows need fewer threads.
        ROWS_2: "matmul_rows8_2" { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_2_MEDIUM: "matmul_rows8_2_medium" needs { threads: 64, workgroup_bytes: 1552 } { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_2_SHORT: "matmul_rows8_2_short" needs { threads: 32, workgroup_bytes: 776 } { steps: choose ["matmul/pieces/rows8_steps_2.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
        ROWS_4: "matmul_rows8_4" needs { threads: 128, workgroup_bytes: 4160 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_4_MEDIUM: "matmul_rows8_4_medium" needs { threads: 64, workgroup_bytes: 2080 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_4_SHORT: "matmul_rows8_4_short" needs { threads: 32, workgroup_bytes: 1040 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
        ROWS_8: "matmul_rows8_8" needs { threads: 128, workgroup_bytes: 6272 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        ROWS_8_MEDIUM: "matmul_rows8_8_medium" needs { threads: 64, workgroup_bytes: 3136 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        ROWS_8_SHORT: "matmul_rows8_8_short" needs { threads: 32, workgroup_bytes: 1568 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
    },
}

/// By rows of activations (2, 4 and 8) and threads (128, 64 and 32).
const VARIANTS: [[&Variant; 3]; 3] = [
    [&ROWS_2, &ROWS_2_MEDIUM, &ROWS_2_SHORT],
    [&ROWS_4, &ROWS_4_MEDIUM, &ROWS_4_SHORT],
    [&ROWS_8, &ROWS_8_MEDIUM, &ROWS_8_SHORT],
];

/// The variant for rows of `k` columns: 0 has 128 threads, 1 has 64, 2 has 32.
pub(crate) fn threads(k: u32) -> usize {
    ROWS8_COLUMNS.into_iter().filter(|&most| k <= most).count()
}

/// Largest number of weight rows per workgroup.
pub(crate) const TILE: u32 = 32;

/// Rows of activations per workgroup in a step of `rows` rows.
pub(crate) fn steps(rows: u32) -> u32 {
    rows.next_power_of_two().clamp(2, 8)
}

/// 1 if the kernels of a plan of `rows` rows have no branch for absent rows of activations. In a
/// plan of many rows few workgroups have absent rows, but short rows of formats with a scale alone
/// lose without the branch.
pub(crate) fn many(rows: u32, w: Weight) -> u32 {
    let slower = w.cols <= ROWS8_COLUMNS[0] && format(w.ty).is_some_and(Format::is_scale_alone);
    u32::from(rows > 8 && !slower)
}

/// Rows of weights per workgroup, a multiple of four, for a weight of `rows` rows of `k` columns
/// and `steps` rows of activations. There are more workgroups of 64 or 32 threads than of 128.
pub(crate) fn tile(rows: u32, k: u32, steps: u32, caps: &Caps) -> u32 {
    let more = if threads(k) == 0 { 1 } else { ROWS8_MORE_WORKGROUPS };
    let workgroups = caps.table.workgroups * ROWS8_WORKGROUPS[steps.ilog2() as usize - 1] * more;
    rows.div_ceil(4 * workgroups).clamp(1, TILE / 4) * 4
}

/// The variant for a part of a product.
pub fn form(part: &Part<'_>) -> &'static Variant {
    let steps = steps(part.product.x.shape.rows);
    VARIANTS[steps.ilog2() as usize - 1][threads(part.product.w.cols)]
}

/// The dispatch of a part of a product.
pub fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let (x, w) = (part.product.x, part.product.w);
    let rows = x.shape.rows;
    let steps = steps(rows);
    let tile = tile(part.rows, w.cols, steps, part.caps);
    let params = Params {
        k: w.cols,
        n: w.rows,
        rows,
        row_base: part.first,
        row_count: part.rows,
        has_bias: part.has_bias(),
        tile,
        exchange: part.caps.subgroup_size,
        many: many(rows, w),
    };
    // Rows past the step are multiplied too. Their results are never read.
    let per_row = part.rows.div_ceil(tile) * rows.div_ceil(steps);
    let bind = Bind { x: x.into(), w: part.w(), bias: part.added, y: part.to.into() };
    bind.dispatch(variant, params, Grid::PerRow { lead: fixed(1, 1), per_row })
}
