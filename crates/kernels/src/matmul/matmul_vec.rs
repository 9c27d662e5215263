//! Product of one row, or of a few rows with a weight of few rows.

use super::matmul;
use super::problem::Part;
use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid};
use gguf::GgmlType;

kernel! {
    MATMUL_VEC: "matmul_vec",
    wgsl: [
        "matmul/matmul_vec.wgsl", threads, quads, "matmul/pieces/vec_sums.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Weight(Eights), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1128 },
    variants: {
        // Row lengths that are a multiple of 8.
        WHOLE: "matmul_vec" { threads: vary { WG: 64, TEAM: 64 }, quads: choose ["shared/x4.wgsl"] },
        // Row lengths that are a multiple of 8, where rows are long or few.
        LONG: "matmul_vec_long" needs { threads: 256, workgroup_bytes: 4320 } {
            threads: vary { WG: 256, TEAM: 256 },
            quads: choose ["shared/x4.wgsl"],
        },
        // Other lengths.
        TAIL: "matmul_vec_tail" needs { threads: 64, workgroup_bytes: 1064 } only Blockless {
            threads: vary { WG: 64, TEAM: 64 },
            quads: choose ["shared/x4_tail.wgsl"],
        },
    },
}

/// Weight rows per workgroup.
pub(crate) const WEIGHT_ROWS: u32 = 4;

/// Columns that a thread reads at a time.
pub(crate) const EIGHT: u32 = 8;

/// Rows of a weight for each workgroup that the device runs at the same time. With fewer rows, 64
/// threads for four of them would keep less than a quarter of the device's threads busy.
const MANY: u32 = 32;

/// Whether 256 threads share four rows of `k` columns instead of 64.
pub(crate) fn long(rows: u32, k: u32, caps: &Caps) -> bool {
    k > caps.table.vec_columns || rows < MANY * caps.table.workgroups && k > 64 * EIGHT
}

/// Largest number of rows, each of which reads the weight.
pub(crate) const MOST_ROWS: u32 = 8;

/// Whether these kernels take a few rows with an f32 weight on this device, if tiles of 64 x 64
/// results would keep less than an eighth of the device busy. Other types would be dequantized
/// again for every row.
#[must_use]
pub fn few(w: Weight, rows: u32, caps: &Caps) -> bool {
    let tiles = rows.div_ceil(matmul::TILE) * w.rows.div_ceil(matmul::TILE);
    w.ty == GgmlType::F32 && rows <= MOST_ROWS && 8 * tiles < caps.table.workgroups
}

/// The variant for a part of a product.
pub fn form(part: &Part<'_>) -> &'static Variant {
    let k = part.product.w.cols;
    match k.is_multiple_of(EIGHT) {
        true if long(part.product.x.shape.rows * part.rows, k, part.caps) => &LONG,
        true => &WHOLE,
        false => &TAIL,
    }
}

/// The dispatch of a part of a product.
pub fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let (x, w) = (part.product.x, part.product.w);
    let params = Params {
        k: w.cols,
        n: w.rows,
        rows: x.shape.rows,
        row_base: part.first,
        row_count: part.rows,
        has_bias: part.has_bias(),
        exchange: part.caps.subgroup_size,
    };
    let grid = Grid::PerRow { lead: x.shape, per_row: part.rows.div_ceil(WEIGHT_ROWS) };
    Bind { x: x.into(), w: part.w(), bias: part.added, y: part.to.into() }.dispatch(variant, params, grid)
}
