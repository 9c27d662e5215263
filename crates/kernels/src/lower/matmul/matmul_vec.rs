//! Product of one row, or of a few rows with a weight of few rows.

use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;
use crate::lower::matmul::matmul;
use crate::lower::matmul::product::Product;
use gguf::GgmlType;

kernel! {
    MATMUL_VEC: "matmul_vec",
    wgsl: ["matmul/matmul_vec.wgsl", quads, "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1280 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths.
        QUADS: "matmul_vec" { quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_vec_tail" { quads: choose ["shared/x4_tail.wgsl"] },
    },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 4;

/// Largest number of rows, each of which reads the weight.
const MOST_ROWS: u32 = 8;

/// Whether these kernels take a few rows with an f32 weight on this device, if tiles of 64 x 64
/// results would keep less than an eighth of the device busy. Other types would be dequantized
/// again for every row.
#[must_use]
pub fn few(w: Weight, rows: u32, caps: &Caps) -> bool {
    let tiles = rows.div_ceil(matmul::TILE) * w.rows.div_ceil(matmul::TILE);
    w.ty == GgmlType::F32 && rows <= MOST_ROWS && 8 * tiles < caps.table.workgroups
}

/// The dispatches, one for each part of the weight.
pub fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let row_count = range.len() as u32;
        let grid = Grid::PerRow { lead: op.x.shape, per_row: row_count.div_ceil(WEIGHT_ROWS) };
        let rows = op.x.shape.rows;
        let params = Params { k, n, rows, row_base: range.start, row_count, has_bias: u32::from(op.bias.is_some()) };
        bind.dispatch(if k % 4 == 0 { &QUADS } else { &TAIL }, params, grid)
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
