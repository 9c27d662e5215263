//! Two products of some rows through cooperative matrices in one kernel.

use super::matmul_tile64::{TILE, Variants, by_bands, fit, form, grid, row_tiles, variants_by_bands};
use super::product::{Operand, Product};
use crate::caps::Caps;
use crate::caps::table::measured::TILE64_LONG_COLUMNS;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch};
use crate::kernel::split::parts;

kernel! {
    MATMUL_TILE64_PAIR: "matmul_tile64_pair",
    wgsl: ["matmul/matmul_tile64_pair.wgsl", "matmul/pieces/tile64_tiles.wgsl", "matmul/pieces/four_of_pairs.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, rows: u32, n: u32, other_n: u32, biases: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight(Tiles), other: Weight(Second), bias: Read, other_bias: Read, y: Write, other_y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 14336 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16_pair" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_16_LONG: "matmul_tile16_pair_long" needs { threads: 384, workgroup_bytes: 40960 } {
            tile: vary { BANDS: 1, PARTS: 12, GROUPS: 2 },
        },
        ROWS_16_NARROW: "matmul_tile16_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 1, PARTS: 8, GROUPS: 1 },
        },
        ROWS_32: "matmul_tile32_pair" { tile: vary { BANDS: 2, PARTS: 4, GROUPS: 2 } },
        ROWS_32_LONG: "matmul_tile32_pair_long" needs { threads: 384, workgroup_bytes: 40960 } {
            tile: vary { BANDS: 2, PARTS: 12, GROUPS: 2 },
        },
        ROWS_32_NARROW: "matmul_tile32_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 2, PARTS: 8, GROUPS: 1 },
        },
        ROWS_48: "matmul_tile48_pair" { tile: vary { BANDS: 3, PARTS: 4, GROUPS: 2 } },
        ROWS_48_LONG: "matmul_tile48_pair_long" needs { threads: 384, workgroup_bytes: 40960 } {
            tile: vary { BANDS: 3, PARTS: 12, GROUPS: 2 },
        },
        ROWS_48_NARROW: "matmul_tile48_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 3, PARTS: 8, GROUPS: 1 },
        },
        ROWS_64: "matmul_tile64_pair" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_64_LONG: "matmul_tile64_pair_long" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 2 },
        },
        ROWS_64_NARROW: "matmul_tile64_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 1 },
        },
        ROWS_80: "matmul_tile80_pair" { tile: vary { BANDS: 5, PARTS: 4, GROUPS: 2 } },
        ROWS_80_LONG: "matmul_tile80_pair_long" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 2 },
        },
        ROWS_80_NARROW: "matmul_tile80_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 1 },
        },
        ROWS_96: "matmul_tile96_pair" { tile: vary { BANDS: 6, PARTS: 4, GROUPS: 2 } },
        ROWS_96_LONG: "matmul_tile96_pair_long" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 2 },
        },
        ROWS_96_NARROW: "matmul_tile96_pair_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 1 },
        },
    },
}

const VARIANTS: Variants = variants_by_bands!();

/// Smallest number of usual workgroups of both products together: an eighth more than the device
/// runs at the same time.
pub(crate) const fn least_workgroups(at_once: u32) -> u32 {
    at_once + at_once / 8
}

/// Whether a device can run the usual and the narrow variants.
pub(crate) fn fits(caps: &Caps) -> bool {
    fit(&VARIANTS, caps)
}

/// Whether two products of the same rows share a kernel: together they have many workgroups, or so
/// few that long or narrow ones run at the same time.
pub(crate) fn pairs(a: &Product, b: &Product, caps: &Caps) -> bool {
    let (workgroups, at_once) = (workgroups(&[a, b]), caps.table.workgroups);
    workgroups >= least_workgroups(at_once) || workgroups <= at_once && a.w.cols >= TILE64_LONG_COLUMNS
}

/// The variant of these for products of the same rows, and its tiles of rows of weights.
pub(crate) fn form_of(variants: &Variants, products: &[&Product], caps: &Caps) -> (&'static Variant, u32) {
    let [first, ..] = products else { panic!("no products") };
    let (variant, tile) = form(by_bands(variants, first.y.shape.rows), workgroups(products), first.w.cols, caps);
    (variant, tiles(products, tile))
}

fn tiles(products: &[&Product], tile: u32) -> u32 {
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
    row_tiles(products[0].y.shape.rows) * tiles(products, TILE)
}

/// The dispatch of a pair.
pub(crate) fn lower([a, b]: &[Product; 2], caps: &Caps) -> Dispatch {
    let (variant, tiles) = form_of(&VARIANTS, &[a, b], caps);
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
    bind.dispatch(variant, params, grid(a.y.shape, tiles))
}
