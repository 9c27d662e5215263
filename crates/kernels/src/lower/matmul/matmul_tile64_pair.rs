//! Two products of some rows through cooperative matrices in one kernel.

use crate::caps::Caps;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch};
use crate::kernel::split::parts;
use crate::lower::matmul::matmul_tile64::{LONG_COLUMNS, MOST_BANDS, NARROW_TILE, TILE, by_bands, grid, row_tiles};
use crate::lower::matmul::product::{Operand, Product};

kernel! {
    MATMUL_TILE64_PAIR: "matmul_tile64_pair",
    wgsl: ["matmul/matmul_tile64_pair.wgsl", "matmul/pieces/tile64_tiles.wgsl", "matmul/pieces/four_of_pairs.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, biases: u32 },
    bindings: Bind { x: Read, scales: Read, w: Tiles, other: Second, bias: Read, other_bias: Read, y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 14336 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16_pair" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_16_NARROW: "matmul_tile16_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 1, PARTS: 8, GROUPS: 1 },
        },
        ROWS_32: "matmul_tile32_pair" { tile: vary { BANDS: 2, PARTS: 4, GROUPS: 2 } },
        ROWS_32_NARROW: "matmul_tile32_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 2, PARTS: 8, GROUPS: 1 },
        },
        ROWS_48: "matmul_tile48_pair" { tile: vary { BANDS: 3, PARTS: 4, GROUPS: 2 } },
        ROWS_48_NARROW: "matmul_tile48_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 3, PARTS: 8, GROUPS: 1 },
        },
        ROWS_64: "matmul_tile64_pair" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_64_NARROW: "matmul_tile64_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 1 },
        },
        ROWS_80: "matmul_tile80_pair" { tile: vary { BANDS: 5, PARTS: 4, GROUPS: 2 } },
        ROWS_80_NARROW: "matmul_tile80_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 1 },
        },
        ROWS_96: "matmul_tile96_pair" { tile: vary { BANDS: 6, PARTS: 4, GROUPS: 2 } },
        ROWS_96_NARROW: "matmul_tile96_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 1 },
        },
    },
}

/// By groups of 16 rows of activations, from 1 on, each for usual and for narrow workgroups.
const VARIANTS: [[&Variant; 2]; MOST_BANDS as usize] = [
    [&ROWS_16, &ROWS_16_NARROW],
    [&ROWS_32, &ROWS_32_NARROW],
    [&ROWS_48, &ROWS_48_NARROW],
    [&ROWS_64, &ROWS_64_NARROW],
    [&ROWS_80, &ROWS_80_NARROW],
    [&ROWS_96, &ROWS_96_NARROW],
];

/// Smallest number of usual workgroups of both products together: an eighth more than the device
/// runs at the same time.
pub(crate) const fn least_workgroups(at_once: u32) -> u32 {
    at_once + at_once / 8
}

/// Whether two products of the same rows share a kernel: together they have many workgroups, or so
/// few that each would have narrow ones.
pub(crate) fn pairs(a: &Product, b: &Product, caps: &Caps) -> bool {
    let products = [a, b];
    workgroups(&products) >= least_workgroups(caps.table.workgroups) || narrow(&products, caps)
}

/// Whether these products together leave a part of the device idle. They then have narrow
/// workgroups, as one product has.
pub(crate) fn narrow(products: &[&Product], caps: &Caps) -> bool {
    products[0].w.cols >= LONG_COLUMNS && workgroups(products) < caps.table.workgroups
}

/// The dispatch's tiles of rows of weights.
pub(crate) fn tiles(products: &[&Product], narrow: bool) -> u32 {
    let tile = if narrow { NARROW_TILE } else { TILE };
    products.iter().map(|product| product.w.rows.div_ceil(tile)).sum()
}

/// Whether this product can share a kernel with another: its rows are in slabs, and one binding
/// holds the weight.
pub(crate) fn joins(product: &Product, caps: &Caps) -> bool {
    let w = product.w;
    matches!(product.operand, Operand::Slabs { .. }) && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

/// Usual workgroups of these products together.
fn workgroups(products: &[&Product]) -> u32 {
    row_tiles(products[0].y.shape.rows) * tiles(products, false)
}

/// The dispatch of a pair.
pub(crate) fn lower([a, b]: &[Product; 2], caps: &Caps) -> Dispatch {
    let narrow = narrow(&[a, b], caps);
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
    let variant = by_bands(&VARIANTS, a.y.shape.rows)[usize::from(narrow)];
    bind.dispatch(variant, params, grid(a.y.shape, tiles(&[a, b], narrow)))
}
