//! Two products of some rows through cooperative matrices in one kernel.

use crate::caps::Caps;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch};
use crate::kernel::split::parts;
use crate::lower::matmul::matmul_tile64::{MOST_BANDS, TILE, by_bands, grid, row_tiles};
use crate::lower::matmul::product::{Operand, Product};

kernel! {
    MATMUL_TILE64_PAIR: "matmul_tile64_pair",
    wgsl: ["matmul/matmul_tile64_pair.wgsl", "matmul/pieces/tile64_tiles.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, biases: u32 },
    bindings: Bind { x: Read, scales: Read, w: Tiles, other: Second, bias: Read, other_bias: Read, y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 13312 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16_pair" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_32: "matmul_tile32_pair" { tile: vary { BANDS: 2, PARTS: 4, GROUPS: 2 } },
        ROWS_48: "matmul_tile48_pair" { tile: vary { BANDS: 3, PARTS: 4, GROUPS: 2 } },
        ROWS_64: "matmul_tile64_pair" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_80: "matmul_tile80_pair" { tile: vary { BANDS: 5, PARTS: 4, GROUPS: 2 } },
        ROWS_96: "matmul_tile96_pair" { tile: vary { BANDS: 6, PARTS: 4, GROUPS: 2 } },
    },
}

/// By groups of 16 rows of activations, from 1 on.
const VARIANTS: [&Variant; MOST_BANDS as usize] = [&ROWS_16, &ROWS_32, &ROWS_48, &ROWS_64, &ROWS_80, &ROWS_96];

/// Smallest number of workgroups of both products together: an eighth more than the device runs at
/// the same time.
pub(crate) const fn least_workgroups(at_once: u32) -> u32 {
    at_once + at_once / 8
}

/// Whether this product can share a kernel with another: its rows are in slabs, and one binding
/// holds the weight.
pub(crate) fn joins(product: &Product, caps: &Caps) -> bool {
    let w = product.w;
    matches!(product.operand, Operand::Slabs { .. }) && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

/// Tiles of rows of a product's weight.
pub(crate) fn tiles(product: &Product) -> u32 {
    product.w.rows.div_ceil(TILE)
}

/// Workgroups of two products together.
pub(crate) fn workgroups(a: &Product, b: &Product) -> u32 {
    row_tiles(a.y.shape.rows) * (tiles(a) + tiles(b))
}

/// The dispatch of a pair.
pub(crate) fn lower([a, b]: &[Product; 2]) -> Dispatch {
    let scales = a.scales().map_or(Arg::None, Arg::from);
    let biases = u32::from(a.bias.is_some()) | u32::from(b.bias.is_some()) << 1;
    let params = Params { k: a.w.cols, rows: a.y.shape.rows, n: a.w.rows, other_n: b.w.rows, biases };
    let bind = Bind {
        x: a.x.into(),
        scales,
        w: a.w.into(),
        other: b.w.into(),
        bias: a.bias.into(),
        other_bias: b.bias.into(),
        y: a.y.into(),
        other_y: b.y.into(),
    };
    bind.dispatch(by_bands(&VARIANTS, a.y.shape.rows), params, grid(a.y.shape, tiles(a) + tiles(b)))
}
