//! Derivative of products of few rows with their experts' weights, one slot at a time.

use super::matmul_experts_input::MatmulExpertsInput;
use crate::graph::tensor::Weight;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;

kernel! {
    MATMUL_VEC_EXPERTS_INPUT: "matmul_vec_experts_input",
    wgsl: ["experts/matmul_vec_experts_input.wgsl", "experts/pieces/rows_in_part.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, n: u32, stride: u32, first: u32, slots: u32, row_base: u32, row_count: u32, onto: u32 },
    bindings: Bind { dy: Read, w: Weight(Any), experts: Read, dx: Write },
    cpu: cpu_ref::matmul_experts_input,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 0 },
}

/// Columns of the weight per workgroup.
const COLUMNS: u32 = 256;

/// The dispatches with ungrouped slots, one for each part of the weight.
pub fn lower(op: &MatmulExpertsInput, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows, cols: k, .. } = op.w;
    let experts = op.routes.experts;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let bind =
            Bind { dy: op.dy.into(), w: Arg::Weight(op.w, part as u32), experts: experts.into(), dx: op.dx.into() };
        let (slots, row_base, row_count) = (experts.shape.elements() as u32, range.start, range.len() as u32);
        let (n, stride, first, onto) = (op.dy.shape.dim, op.stride(), op.first, u32::from(part > 0));
        let params = Params { k, n, stride, first, slots, row_base, row_count, onto };
        bind.dispatch(params, Grid::PerRow { lead: experts.shape, per_row: experts.shape.dim * k.div_ceil(COLUMNS) })
    };
    parts(cx.caps, ty, rows, k).into_iter().enumerate().map(one).collect()
}
