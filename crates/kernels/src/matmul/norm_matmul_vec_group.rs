//! Up to three products in f32 of one row, which they norm themselves if it is normed, in one
//! kernel. The planner makes it; it is never recorded.

use super::matmul_vec::{EIGHT, WEIGHT_ROWS, long};
use super::norm_matmul_vec_teams as teams;
use super::norm_matmul_vec_teams::NORM_MATMUL_VEC_TEAMS;
use super::norm_pack_matmul_vec::Normed;
use super::product::{Operand, Product};
use crate::caps::Caps;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;

kernel! {
    NORM_MATMUL_VEC_GROUP: "norm_matmul_vec_group",
    wgsl: [
        "matmul/norm_matmul_vec_group.wgsl", threads, "matmul/pieces/acts_eights.wgsl", "matmul/pieces/vec_sums.wgsl",
        "shared/norm_share.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind {
        h: Read, u: Read, wa: Weight(Eights), wb: Weight(Eights), wc: Weight(Eights), bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1256 },
    variants: {
        WHOLE: "norm_matmul_vec_group" { threads: vary { WG: 64, TEAM: 64 } },
        // This variant serves weights whose rows are long or few.
        LONG: "norm_matmul_vec_group_long" needs { threads: 256, workgroup_bytes: 4448 } { threads: vary { WG: 256, TEAM: 256 } },
    },
}

/// Largest number of products.
pub(crate) const MOST: usize = 3;

/// y = w norm(h) u for every product. Without an `eps` the row is h.
#[derive(Clone, Debug)]
pub struct NormMatmulVecGroup {
    pub row: Normed,
    pub products: Vec<Product>,
}

/// Whether this product can share a kernel with others: it is one of one row in f32, and one
/// binding holds the weight.
pub(crate) fn joins(product: &Product, caps: &Caps) -> bool {
    let (w, one) = (product.w, product.x.shape.rows == 1 && product.operand == Operand::F32);
    one && w.cols.is_multiple_of(EIGHT) && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

impl Operation for NormMatmulVecGroup {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}

impl Lowering for NormMatmulVecGroup {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let of = |n: usize| self.products.get(n);
        let rows = |n: usize| of(n).map_or(0, |product| product.w.rows);
        let weight = |n: usize| of(n).unwrap_or(&self.products[0]).w.into();
        let bias = |n: usize| of(n).and_then(|product| product.bias).into();
        let y = |n: usize| of(n).map_or(Arg::Spare, |product| product.y.into());
        let k = self.products[0].w.cols;
        let params = Params {
            k,
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
        let weights: Vec<_> = self.products.iter().map(|product| product.w).collect();
        let (variant, weight_rows) = match long((0..MOST).map(rows).sum(), k, cx.caps) {
            _ if teams::serves(&NORM_MATMUL_VEC_TEAMS, &weights, teams::WEIGHT_ROWS, cx.caps) => {
                (NORM_MATMUL_VEC_TEAMS.only(), teams::WEIGHT_ROWS)
            }
            true => (&LONG, WEIGHT_ROWS),
            false => (&WHOLE, WEIGHT_ROWS),
        };
        let per_row = (0..MOST).map(|n| rows(n).div_ceil(weight_rows)).sum();
        vec![bind.dispatch(variant, params, Grid::PerRow { lead: self.row.h.shape, per_row })]
    }
}
