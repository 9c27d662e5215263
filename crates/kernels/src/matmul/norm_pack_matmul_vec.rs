//! Up to three products of one normed row and the packing of that row, in one kernel. The planner
//! makes it; it is never recorded.

use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_PACK_MATMUL_VEC: "norm_pack_matmul_vec",
    wgsl: [
        "matmul/norm_pack_matmul_vec.wgsl", "matmul/pieces/acts_norm.wgsl", "shared/acts_own.wgsl", "shared/norm_share.wgsl",
        "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind {
        h: Read, u: Read, wa: Weight(Units), wb: Weight(Units), wc: Weight(Units), bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 18176 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 16;

/// A row and its norm, if it has one. Readers of h u apply the factor of the norm themselves.
#[derive(Clone, Debug)]
pub struct Normed {
    pub h: Tensor,
    pub u: Option<Weight>,
    pub eps: Option<f32>,
}

impl Normed {
    /// A row without a norm.
    pub(crate) fn plain(h: Tensor) -> Self {
        Self { h, u: None, eps: None }
    }
}

/// y = w norm(h) u for every product.
#[derive(Clone, Debug)]
pub struct NormPackMatmulVec {
    pub row: Normed,
    pub products: Vec<Product>,
}

impl Operation for NormPackMatmulVec {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}

impl Lowering for NormPackMatmulVec {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let of = |n: usize| self.products.get(n);
        let rows = |n: usize| of(n).map_or(0, |product| product.w.rows);
        let weight = |n: usize| of(n).unwrap_or(&self.products[0]).w.into();
        let bias = |n: usize| of(n).and_then(|product| product.bias).into();
        let y = |n: usize| of(n).map_or(Arg::Spare, |product| product.y.into());
        let params = Params {
            k: self.products[0].w.cols,
            rows_a: rows(0),
            rows_b: rows(1),
            rows_c: rows(2),
            biases: self.products.iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum(),
            has_norm: u32::from(self.row.eps.is_some()),
            has_weight: u32::from(self.row.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.row.eps.unwrap_or(0.0),
        };
        let bind = Bind {
            h: self.row.h.into(),
            u: self.row.u.into(),
            wa: weight(0),
            wb: weight(1),
            wc: weight(2),
            bias_a: bias(0),
            bias_b: bias(1),
            bias_c: bias(2),
            ya: y(0),
            yb: y(1),
            yc: y(2),
        };
        let per_row = (0..self.products.len()).map(|n| rows(n).div_ceil(WEIGHT_ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: self.row.h.shape, per_row })]
    }
}
