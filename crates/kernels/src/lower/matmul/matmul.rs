//! Product of many rows with a weight matrix, in tiles of f32: the portable kernel.

use super::product::Product;
use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;

kernel! {
    MATMUL: "matmul",
    wgsl: ["matmul/matmul.wgsl", "matmul/pieces/products8.wgsl", quads],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 10240 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths.
        QUADS: "matmul" { quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_tail" { quads: choose ["shared/x4_tail.wgsl"] },
    },
}

/// Rows of activations and of weights per workgroup.
pub(crate) const TILE: u32 = 64;

/// The dispatches of a product of several rows, one for each part of the weight.
pub(crate) fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let rows = op.x.shape.rows;
        let has_bias = u32::from(op.bias.is_some());
        let params = Params { k, n, rows, row_base: range.start, row_count: range.len() as u32, has_bias };
        let grid = Grid::Tiles { lead: op.x.shape, tile: TILE, x: (range.len() as u32).div_ceil(TILE) };
        bind.dispatch(if k % 4 == 0 { &QUADS } else { &TAIL }, params, grid)
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
