//! Product of some rows with a weight matrix, quantized or of 16 bits, through cooperative
//! matrices, in tiles of 16 to 96 rows.

use super::problem::Part;
use super::product::Product;
use super::{matmul_tile128, matmul_vec_q8};
use crate::caps::Caps;
use crate::caps::table::measured::{TILE64_LONG_COLUMNS, TILE64_MOST_ROWS, TILE64_SPARSE, TILE64_TILES};
use crate::graph::tensor::{Shape, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, fixed};
use crate::kernel::{Variant, format};

kernel! {
    MATMUL_TILE64: "matmul_tile64",
    wgsl: ["matmul/matmul_tile64.wgsl", "matmul/pieces/tile64_tiles.wgsl", "matmul/pieces/four_of_pairs.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight(Tiles), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 14336 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_16_LONG: "matmul_tile16_long" needs { threads: 384, workgroup_bytes: 40960 } { tile: vary { BANDS: 1, PARTS: 12, GROUPS: 2 } },
        ROWS_16_NARROW: "matmul_tile16_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 1, PARTS: 8, GROUPS: 1 },
        },
        ROWS_32: "matmul_tile32" { tile: vary { BANDS: 2, PARTS: 4, GROUPS: 2 } },
        ROWS_32_LONG: "matmul_tile32_long" needs { threads: 384, workgroup_bytes: 40960 } { tile: vary { BANDS: 2, PARTS: 12, GROUPS: 2 } },
        ROWS_32_NARROW: "matmul_tile32_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 2, PARTS: 8, GROUPS: 1 },
        },
        ROWS_48: "matmul_tile48" { tile: vary { BANDS: 3, PARTS: 4, GROUPS: 2 } },
        ROWS_48_LONG: "matmul_tile48_long" needs { threads: 384, workgroup_bytes: 40960 } { tile: vary { BANDS: 3, PARTS: 12, GROUPS: 2 } },
        ROWS_48_NARROW: "matmul_tile48_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 3, PARTS: 8, GROUPS: 1 },
        },
        ROWS_64: "matmul_tile64" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_64_LONG: "matmul_tile64_long" needs { threads: 256, workgroup_bytes: 27648 } { tile: vary { BANDS: 4, PARTS: 8, GROUPS: 2 } },
        ROWS_64_NARROW: "matmul_tile64_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 1 },
        },
        ROWS_80: "matmul_tile80" { tile: vary { BANDS: 5, PARTS: 4, GROUPS: 2 } },
        ROWS_80_LONG: "matmul_tile80_long" needs { threads: 256, workgroup_bytes: 27648 } { tile: vary { BANDS: 5, PARTS: 8, GROUPS: 2 } },
        ROWS_80_NARROW: "matmul_tile80_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 5, PARTS: 8, GROUPS: 1 },
        },
        ROWS_96: "matmul_tile96" { tile: vary { BANDS: 6, PARTS: 4, GROUPS: 2 } },
        ROWS_96_LONG: "matmul_tile96_long" needs { threads: 256, workgroup_bytes: 27648 } { tile: vary { BANDS: 6, PARTS: 8, GROUPS: 2 } },
        ROWS_96_NARROW: "matmul_tile96_narrow" needs { threads: 256, workgroup_bytes: 27648 } {
            tile: vary { BANDS: 6, PARTS: 8, GROUPS: 1 },
        },
    },
}

/// The usual, the long and the narrow variant of a kernel for each number of groups of 16 rows of
/// activations, from 1 on.
pub(crate) type Variants = [[&'static Variant; 3]; MOST_BANDS as usize];

/// The [`Variants`] of the kernel of a file.
macro_rules! variants_by_bands {
    () => {
        [
            [&ROWS_16, &ROWS_16_LONG, &ROWS_16_NARROW],
            [&ROWS_32, &ROWS_32_LONG, &ROWS_32_NARROW],
            [&ROWS_48, &ROWS_48_LONG, &ROWS_48_NARROW],
            [&ROWS_64, &ROWS_64_LONG, &ROWS_64_NARROW],
            [&ROWS_80, &ROWS_80_LONG, &ROWS_80_NARROW],
            [&ROWS_96, &ROWS_96_LONG, &ROWS_96_NARROW],
        ]
    };
}
pub(crate) use variants_by_bands;

const VARIANTS: Variants = variants_by_bands!();
/// Most groups of 16 rows of activations in one workgroup.
pub(crate) const MOST_BANDS: u32 = 6;
/// Groups of 16 rows of activations in one workgroup, if the rows of a step are several tiles.
const USUAL_BANDS: u32 = 4;
/// Rows of activations of one cooperative matrix.
const BAND: u32 = 16;
/// Weight rows per workgroup; a narrow workgroup has [`NARROW_TILE`].
pub(crate) const TILE: u32 = 32;
pub(crate) const NARROW_TILE: u32 = 16;

/// Whether these kernels multiply `rows` rows with the weight on devices with cooperative matrices:
/// up to the table's number of rows, and more rows if narrow tiles of 128 x 64 would have many
/// empty rows or would be few (`TILE64_TILES`).
///
/// A single row of activations comes here only if its weight could be multiplied in 8 bits and the
/// table forbids it.
#[must_use]
pub fn serves(w: Weight, rows: u32, caps: &Caps) -> bool {
    let format = format::format(w.ty);
    // A weight with many more rows than columns is usually one of a pair in one dispatch.
    let paired = w.rows >= 3 * w.cols && format.is_some_and(|f| f.tiles().is_some());
    let count = rows.div_ceil(matmul_tile128::TILE) * w.rows.div_ceil(matmul_tile128::NARROW);
    let large = if paired { 2 * count } else { count };
    // Of weights of 16 bits, which need no unpacking, whole large tiles take less time even so.
    let units = format.is_some_and(|f| f.units.is_some());
    let [filled, whole] = TILE64_SPARSE;
    let sparse = units
        && rows > matmul_tile128::TILE
        && whole * rows.next_multiple_of(4 * BAND) <= filled * rows.next_multiple_of(matmul_tile128::TILE);
    let [most, each] = TILE64_TILES;
    let few = each * large <= most * caps.table.workgroups;
    let tiled = matmul_tile128::serves(w) && format.is_some_and(|f| f.tiles().is_some());
    tiled
        && (rows > 1 || matmul_vec_q8::serves(w))
        && (rows <= tiled_rows(caps) || rows <= TILE64_MOST_ROWS && (sparse || few))
}

/// Largest number of rows for which small tiles serve every weight: the table's, and a tile of
/// [`MOST_BANDS`] where the table allows a whole one.
fn tiled_rows(caps: &Caps) -> u32 {
    let rows = caps.table.tile64_rows;
    if rows >= BAND * USUAL_BANDS { rows.max(BAND * MOST_BANDS) } else { rows }
}

/// Groups of 16 rows that a workgroup multiplies in a step of `rows` rows: all of them, up to
/// [`MOST_BANDS`].
pub(crate) fn bands(rows: u32) -> u32 {
    let all = rows.div_ceil(BAND);
    if all <= MOST_BANDS { all } else { USUAL_BANDS }
}

/// The entry of `variants` for the groups of 16 rows of activations in a step of `rows` rows.
pub(crate) fn by_bands<T: Copy>(variants: &[T; MOST_BANDS as usize], rows: u32) -> T {
    variants[bands(rows) as usize - 1]
}

/// The number of tiles of rows of activations.
pub(crate) fn row_tiles(rows: u32) -> u32 {
    rows.div_ceil(BAND * bands(rows))
}

/// The workgroups of a step of rows `y`: `x` tiles of rows of weights by the tiles of rows of
/// activations.
pub(crate) fn grid(y: Shape, x: u32) -> Grid {
    Grid::Tiles { lead: y, tile: BAND * bands(y.rows), x }
}

/// The shape, in words, of the f16 halves of `x` in slabs, and the rows of a slab: all rows, in
/// whole tiles. Rows past the step are never written, and what is computed from them is not stored.
#[must_use]
pub fn slabs(x: Shape) -> (Shape, u32) {
    let rows = BAND * bands(x.rows) * row_tiles(x.rows);
    (fixed(rows, x.width() / 2), rows)
}

/// The variant of these (usual, long, narrow), and how many rows of weights a workgroup takes.
/// `workgroups` is the number of usual ones.
///
/// A device runs the table's `workgroups` of long or narrow ones at the same time, and two or three
/// times as many usual ones. A long workgroup divides the columns among more subgroups and takes
/// two thirds of a usual one's time. A narrow one also has half the rows of weights and takes half
/// of the time. So the smallest workgroups are best whose number still runs at once.
pub(crate) fn form(
    [usual, long, narrow]: [&'static Variant; 3],
    workgroups: u32,
    k: u32,
    caps: &Caps,
) -> (&'static Variant, u32) {
    let at_once = caps.table.workgroups;
    match k < TILE64_LONG_COLUMNS || workgroups > at_once {
        true => (usual, TILE),
        false if 2 * workgroups <= at_once => (narrow, NARROW_TILE),
        false if long.fits(caps) => (long, TILE),
        false => (usual, TILE),
    }
}

/// Whether a device can run all of these but the long ones, which [`form`] leaves out if need be.
pub(crate) fn fit(variants: &Variants, caps: &Caps) -> bool {
    variants.iter().all(|[usual, _, narrow]| usual.fits(caps) && narrow.fits(caps))
}

/// The variant for a part of a product, and how many rows of weights a workgroup takes.
fn tiles(part: &Part<'_>) -> (&'static Variant, u32) {
    let rows = part.to.shape.rows;
    let workgroups = row_tiles(rows) * part.rows.div_ceil(TILE);
    form(by_bands(&VARIANTS, rows), workgroups, part.product.w.cols, part.caps)
}

/// The variant for a part of a product.
pub fn form_of(part: &Part<'_>) -> &'static Variant {
    tiles(part).0
}

/// The dispatch of a part of a product.
pub fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let Product { w, x, .. } = *part.product;
    let scales = part.product.scales().map_or(Arg::None, Arg::from);
    let params = Params {
        k: w.cols,
        n: w.rows,
        rows: part.to.shape.rows,
        row_base: part.first,
        row_count: part.rows,
        has_bias: part.has_bias(),
    };
    let grid = grid(part.to.shape, part.rows.div_ceil(tiles(part).1));
    Bind { x: x.into(), scales, w: part.w(), bias: part.added, y: part.to.into() }.dispatch(variant, params, grid)
}
