//! Product of one row with a weight matrix.

use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;
use crate::lower::matmul::product::Product;

kernel! {
    MATMUL_VEC: "matmul_vec",
    wgsl: ["matmul/matmul_vec.wgsl", quads, "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul_vec,
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

/// The dispatches of a product whose activations have one row, one for each part of the weight.
pub fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let row_count = range.len() as u32;
        let grid = Grid::PerRow { lead: op.x.shape, per_row: row_count.div_ceil(WEIGHT_ROWS) };
        let params = Params { k, row_base: range.start, row_count, has_bias: u32::from(op.bias.is_some()) };
        bind.dispatch(if k % 4 == 0 { &QUADS } else { &TAIL }, params, grid)
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
