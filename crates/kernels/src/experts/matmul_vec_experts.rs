//! Products of few rows with their experts' weights, one slot at a time.

use super::matmul_experts::MatmulExperts;
use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;

kernel! {
    MATMUL_VEC_EXPERTS: "matmul_vec_experts",
    wgsl: ["experts/matmul_vec_experts.wgsl", quads, "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, n: u32, stride: u32, first: u32, per: u32, slots: u32, row_base: u32, row_count: u32 },
    bindings: Bind { x: Read, w: Weight(Any), experts: Read, y: Write },
    cpu: cpu_ref::matmul_vec_experts,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1280 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths.
        QUADS: "matmul_vec_experts" { quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_vec_experts_tail" only Blockless { quads: choose ["shared/x4_tail.wgsl"] },
    },
}

/// Largest number of rows in a recording whose slots are not grouped. With so few rows, slots
/// rarely share an expert, and the cache then holds its weights.
pub const MAX_ROWS: u32 = 8;

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 4;

/// The dispatches of a product with ungrouped slots, one for each part of the weight.
pub fn lower(op: &MatmulExperts, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows, cols: k, .. } = op.w;
    let (n, experts) = (op.y.shape.dim, op.routes.experts);
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let bind = Bind { x: op.x.into(), w: Arg::Weight(op.w, part as u32), experts: experts.into(), y: op.y.into() };
        let (slots, row_base, row_count) = (experts.shape.elements() as u32, range.start, range.len() as u32);
        let params = Params { k, n, stride: op.stride(), first: op.first, per: op.per(), slots, row_base, row_count };
        let grid = Grid::PerRow { lead: experts.shape, per_row: experts.shape.dim * n.div_ceil(WEIGHT_ROWS) };
        bind.dispatch(if k % 4 == 0 { &QUADS } else { &TAIL }, params, grid)
    };
    parts(cx.caps, ty, rows, k).into_iter().enumerate().map(one).collect()
}
