//! Up to three products of 8-bit activations in one kernel, of one row or of a few. The planner
//! makes it; it is never recorded.

use super::matmul_rows8_group;
use super::product::{Operand, Product};
use crate::caps::Caps;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;

kernel! {
    MATMUL_VEC_GROUP: "matmul_vec_group",
    wgsl: [
        "matmul/matmul_vec_group.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, exchange: u32 },
    bindings: Bind {
        x: Read, wa: Weight(Units), wb: Weight(Units), wc: Weight(Units), bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 32, workgroup_bytes: 512 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 2;

/// Two or three products of the same packed rows.
#[derive(Clone, Debug)]
pub struct MatmulGroup {
    pub products: Vec<Product>,
}

/// Whether this product can share a kernel with others: its rows are packed, and one binding holds
/// the weight.
pub(crate) fn joins(product: &Product, caps: &Caps) -> bool {
    let w = product.w;
    product.operand == Operand::Q8 && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

impl MatmulGroup {
    /// One bit for each product that adds a bias.
    pub(crate) fn biases(&self) -> u32 {
        self.products.iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum()
    }
}

impl Operation for MatmulGroup {
    fn io(&self) -> Io {
        Io { reads: vec![self.products[0].x], writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}

impl Lowering for MatmulGroup {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if self.products[0].x.shape.rows > 1 {
            return vec![matmul_rows8_group::lower(self, cx)];
        }
        let [a, b] = [&self.products[0], &self.products[1]];
        let c = self.products.get(2);
        let rows = |product: &Product| product.w.rows;
        let params = Params {
            k: a.w.cols,
            rows_a: rows(a),
            rows_b: rows(b),
            rows_c: c.map_or(0, rows),
            biases: self.biases(),
            exchange: cx.caps.subgroup_size,
        };
        let bind = Bind {
            x: a.x.into(),
            wa: a.w.into(),
            wb: b.w.into(),
            wc: c.unwrap_or(b).w.into(),
            bias_a: a.bias.into(),
            bias_b: b.bias.into(),
            bias_c: c.and_then(|product| product.bias).into(),
            ya: a.y.into(),
            yb: b.y.into(),
            yc: c.map_or(Arg::Spare, |product| product.y.into()),
        };
        let per_row = self.products.iter().map(|product| rows(product).div_ceil(WEIGHT_ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: a.x.shape, per_row })]
    }
}
