//! The products of few rows with their experts' weights and the weighted sum of their results in
//! one kernel. The planner makes it; it is never recorded.

use super::matmul_vec_q8_experts::MatmulVecQ8Experts;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MATMUL_VEC_Q8_EXPERTS_SUM: "matmul_vec_q8_experts_sum",
    wgsl: [
        "experts/matmul_vec_q8_experts_sum.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, stride: u32, first: u32, chosen: u32, rows: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Weight(Units), experts: Read, weights: Read, y: Write },
    cpu: cpu_ref::combine_experts,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1024 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 2;

/// y\[t\] = sum of weights[t, j] (x[t, j] w[expert j of t]^T).
#[derive(Clone, Debug)]
pub struct MatmulExpertsSum {
    pub product: MatmulVecQ8Experts,
    pub weights: Tensor,
    pub y: Tensor,
}

impl Operation for MatmulExpertsSum {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.packed, self.product.of.routes.experts, self.weights], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }
}

impl Lowering for MatmulExpertsSum {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let of = &self.product.of;
        let (experts, w) = (of.routes.experts, of.w);
        let bind = Bind {
            x: self.product.packed.into(),
            w: w.into(),
            experts: experts.into(),
            weights: self.weights.into(),
            y: self.y.into(),
        };
        let params = Params {
            k: w.cols,
            n: self.y.shape.dim,
            stride: of.stride(),
            first: of.first,
            chosen: experts.shape.dim,
            rows: experts.shape.rows,
            exchange: cx.caps.subgroup_size,
        };
        vec![
            bind.dispatch(params, Grid::PerRow { lead: self.y.shape, per_row: self.y.shape.dim.div_ceil(WEIGHT_ROWS) }),
        ]
    }
}
