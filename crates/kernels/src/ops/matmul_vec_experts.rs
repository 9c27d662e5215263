//! Products of few rows with their experts' weights, each slot by itself.

use super::matmul_experts::{MatmulExperts, product};
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, parts};
use crate::tensor::Weight;

kernel! {
    MATMUL_VEC_EXPERTS: "matmul_vec_experts",
    entry: "matmul_vec_experts",
    wgsl: ["matmul_vec_experts.wgsl", "shared/x4.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, n: u32, stride: u32, first: u32, per: u32, slots: u32, row_base: u32, row_count: u32 },
    bindings: Bind { x: Read, w: Weight, experts: Read, y: Write },
    cpu: cpu_ref::matmul_vec_experts,
    nmse: 1e-10,
}

// Row lengths that are no multiple of 4.
kernel! {
    MATMUL_VEC_EXPERTS_TAIL: "matmul_vec_experts_tail" = MATMUL_VEC_EXPERTS with
    wgsl: ["matmul_vec_experts.wgsl", "shared/x4_tail.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"]
}

/// The most rows of a recording whose slots are not grouped: few of them share an expert, whose weights the cache then holds.
pub const MAX_ROWS: u32 = 8;

/// Weight rows per workgroup.
const ROWS: u32 = 4;

/// The dispatches of a product whose slots are not grouped, one for each part of the weight.
pub fn lower(op: &MatmulExperts, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows, cols: k, .. } = op.w;
    let (n, experts) = (op.y.shape.dim, op.routes.experts);
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let bind = Bind { x: op.x.into(), w: Arg::Weight(op.w, part as u32), experts: experts.into(), y: op.y.into() };
        let (slots, row_base, row_count) = (experts.shape.elements() as u32, range.start, range.len() as u32);
        let params = Params { k, n, stride: op.stride(), first: op.first, per: op.per(), slots, row_base, row_count };
        let grid = Grid::PerRow { lead: experts.shape, per_row: experts.shape.dim * n.div_ceil(ROWS) };
        let dispatch = bind.dispatch(params, grid);
        if k % 4 == 0 { dispatch } else { Dispatch { row: &MATMUL_VEC_EXPERTS_TAIL, ..dispatch } }
    };
    parts(cx.caps, ty, rows, k).into_iter().enumerate().map(one).collect()
}

/// As `matmul_experts`, of up to eight rows.
pub fn case(g: &mut Gen) -> Case {
    let rows = g.pick(&[1, 1, 2, 3, 5, MAX_ROWS]);
    product(g, rows)
}
