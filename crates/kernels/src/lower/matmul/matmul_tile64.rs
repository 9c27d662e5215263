//! Product of some rows with a weight matrix, quantized or of 16 bits, through cooperative
//! matrices, in tiles of 16, 32 or 64 rows.

use crate::caps::Caps;
use crate::graph::tensor::{Shape, Weight};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, fixed};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::lower::matmul::product::Product;
use crate::lower::matmul::{matmul_tile128, matmul_vec_q8};

kernel! {
    MATMUL_TILE64: "matmul_tile64",
    wgsl: ["matmul/matmul_tile64.wgsl", "matmul/pieces/tile64_tiles.wgsl", tile, "shared/unit.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, scales: Read, w: Tiles, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 13312 },
    variants: {
        // BANDS: groups of 16 rows of x. PARTS: subgroups that each take a part of the columns.
        // GROUPS: groups of 16 rows of weights.
        ROWS_16: "matmul_tile16" { tile: vary { BANDS: 1, PARTS: 4, GROUPS: 2 } },
        ROWS_16_LONG: "matmul_tile16_long" needs { threads: 384, workgroup_bytes: 39936 } { tile: vary { BANDS: 1, PARTS: 12, GROUPS: 2 } },
        ROWS_16_NARROW: "matmul_tile16_narrow" needs { threads: 256, workgroup_bytes: 26624 } {
            tile: vary { BANDS: 1, PARTS: 8, GROUPS: 1 },
        },
        ROWS_32: "matmul_tile32" { tile: vary { BANDS: 2, PARTS: 4, GROUPS: 2 } },
        ROWS_32_LONG: "matmul_tile32_long" needs { threads: 384, workgroup_bytes: 39936 } { tile: vary { BANDS: 2, PARTS: 12, GROUPS: 2 } },
        ROWS_32_NARROW: "matmul_tile32_narrow" needs { threads: 256, workgroup_bytes: 26624 } {
            tile: vary { BANDS: 2, PARTS: 8, GROUPS: 1 },
        },
        ROWS_64: "matmul_tile64" { tile: vary { BANDS: 4, PARTS: 4, GROUPS: 2 } },
        ROWS_64_LONG: "matmul_tile64_long" needs { threads: 256, workgroup_bytes: 26624 } { tile: vary { BANDS: 4, PARTS: 8, GROUPS: 2 } },
        ROWS_64_NARROW: "matmul_tile64_narrow" needs { threads: 256, workgroup_bytes: 26624 } {
            tile: vary { BANDS: 4, PARTS: 8, GROUPS: 1 },
        },
    },
}

/// By groups of 16 rows of activations: 1, 2 and 4.
const VARIANTS: [[&Variant; 3]; 3] =
    [[&ROWS_16, &ROWS_16_LONG, &ROWS_16_NARROW], [&ROWS_32, &ROWS_32_LONG, &ROWS_32_NARROW], [&ROWS_64, &ROWS_64_LONG, &ROWS_64_NARROW]];
/// Rows of activations of one cooperative matrix.
const BAND: u32 = 16;
/// Weight rows per workgroup; a narrow workgroup has [`NARROW_TILE`].
pub(crate) const TILE: u32 = 32;
const NARROW_TILE: u32 = 16;
/// A device is idle part of the time if there are fewer workgroups than this times the number that
/// it runs at the same time. Such products use workgroups of more subgroups, if there are columns
/// for each and the device has the workgroup memory. With even fewer workgroups each also has half
/// as many rows of weights.
///
/// Measured on an NVIDIA H200 with 32 rows: 4096 to 12288 takes 27 us. 4096 to 4096 takes 13 us
/// with 8 subgroups and an eighth less with 12. 4096 to 1024 takes 11 us, and 8 us with 8 subgroups
/// and half the rows.
const FEW: u32 = 2;
pub(crate) const LONG_COLUMNS: u32 = 1024;

/// Largest number of rows that a weight of few rows multiplies in small tiles.
const MOST_ROWS: u32 = 1024;

/// Columns from which on the table's number of rows is 7/4 as large: adding the subgroups' parts
/// takes a smaller share of the time of a tile with many columns.
const MANY_COLUMNS: u32 = 4096;

/// Largest number of rows that a weight of `cols` columns multiplies in small tiles, for the
/// table's `tile64_rows`, however many large tiles there would be.
pub(crate) fn most_rows(cols: u32, tile64_rows: u32) -> u32 {
    if cols < MANY_COLUMNS { tile64_rows } else { tile64_rows + tile64_rows / 4 * 3 }
}

/// Whether these kernels multiply `rows` rows with the weight on devices with cooperative matrices:
/// up to the table's number of rows, and more rows if tiles of 128 x 128 would be too few to keep
/// the device busy: fewer than 3/2 times as many as it runs at the same time. A small tile divides
/// the columns among its subgroups, so it takes less time.
///
/// Measured on an NVIDIA H200: Qwen3-8B reads 9,285 tokens a second of a prompt of 512 if only the
/// products of keys and values take small tiles, and 10,329 if all products do. Qwen2.5-1.5B, whose
/// gate and up have 280 large tiles of 1536 columns, reads 34,517 and 33,904. On an NVIDIA H100,
/// Qwen3-8B reads 8,105, 9,647, 9,307 and 10,462 tokens a second of prompts of 320, 384, 448 and
/// 512 if gate and up, with 4096 columns, take large tiles, and 9,480, 10,277, 9,830 and 10,383 if
/// they take small ones. Qwen2.5-1.5B reads 36,034, 38,768, 33,701 and 37,976 tokens a second with
/// large tiles, and 33,653, 33,891, 34,551 and 36,939 with small ones.
///
/// A single row of activations comes here only if its weight could be multiplied in 8 bits and the
/// table forbids it.
#[must_use]
pub fn serves(w: Weight, rows: u32, caps: &Caps) -> bool {
    let large = rows.div_ceil(matmul_tile128::TILE) * w.rows.div_ceil(matmul_tile128::TILE);
    let most = most_rows(w.cols, caps.table.tile64_rows);
    let tiled = matmul_tile128::serves(w) && format::format(w.ty).is_some_and(|f| f.tiles().is_some());
    tiled && (rows > 1 || matmul_vec_q8::serves(w)) && (rows <= most || rows <= MOST_ROWS && 2 * large < 3 * caps.table.workgroups)
}

/// Groups of 16 rows that a workgroup multiplies in a step of `rows` rows: 1, 2 or 4.
pub(crate) fn bands(rows: u32) -> u32 {
    rows.div_ceil(BAND).next_power_of_two().min(4)
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

/// The variant for `tiles` tiles of rows and `row_count` rows of weights of `k` columns, and how
/// many rows of weights a workgroup takes.
fn form([usual, long, narrow]: [&'static Variant; 3], tiles: u32, row_count: u32, k: u32, caps: &Caps) -> (&'static Variant, u32) {
    let (workgroups, at_once) = (tiles * row_count.div_ceil(TILE), caps.table.workgroups);
    match k < LONG_COLUMNS || workgroups >= FEW * at_once {
        true => (usual, TILE),
        false if workgroups < at_once => (narrow, NARROW_TILE),
        false if long.fits(caps) => (long, TILE),
        false => (usual, TILE),
    }
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let scales = op.scales().map_or(Arg::None, Arg::from);
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let bind = Bind { x: op.x.into(), scales, w: Arg::Weight(op.w, part as u32), bias: op.bias.into(), y: op.y.into() };
        let (rows, row_base, row_count, has_bias) = (op.y.shape.rows, range.start, range.len() as u32, u32::from(op.bias.is_some()));
        let params = Params { k, n, rows, row_base, row_count, has_bias };
        let (variant, tile) = form(VARIANTS[bands(rows).ilog2() as usize], row_tiles(rows), row_count, k, cx.caps);
        bind.dispatch(variant, params, grid(op.y.shape, row_count.div_ceil(tile)))
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
