//! Up to three products of one row. The same kernel computes the residual sum and norm and packs
//! the row. The planner makes it; it is never recorded.

use super::product::Product;
use crate::caps::Caps;
use crate::caps::table::measured::SUM_TURNS;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::norm::norm_add::NormAdd;

kernel! {
    NORM_ADD_MATMUL_VEC: "norm_add_matmul_vec",
    wgsl: [
        "matmul/norm_add_matmul_vec.wgsl", "matmul/pieces/acts_norm_add.wgsl", "matmul/pieces/acts_norm_add_eights.wgsl",
        "shared/acts_own.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl",
        "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, rows_a: u32, rows_b: u32, rows_c: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32
    },
    bindings: Bind {
        a: Read, b: Read, w: Read, s: Read, u: Read, h: Write, wa: Weight(Units), wb: Weight(Units), wc: Weight(Units), ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 11040 },
}

/// Columns that fit in a workgroup's memory.
pub(crate) const MOST_COLS: u32 = 2560;

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 16;

/// y = w x for every product, where x is the packed sum. No other operation reads x.
#[derive(Clone, Debug)]
pub struct NormAddMatmulVec {
    pub sum: NormAdd,
    pub products: Vec<Product>,
}

/// Whether every workgroup of products with `rows` weight rows may make the row itself.
pub(crate) fn in_every_workgroup(rows: u32, caps: &Caps) -> bool {
    rows <= WEIGHT_ROWS * SUM_TURNS * caps.table.workgroups
}

/// Whether products with `rows` weight rows may make this sum.
pub(crate) fn makes(sum: &NormAdd, rows: u32, caps: &Caps) -> bool {
    let shape = sum.h.shape;
    sum.scale == 1.0
        && sum.pair.is_none()
        && shape.rows == 1
        && shape.width() <= MOST_COLS
        && in_every_workgroup(rows, caps)
}

impl Operation for NormAddMatmulVec {
    fn io(&self) -> Io {
        let made = self.products.iter().map(|product| product.y);
        Io { reads: vec![self.sum.a, self.sum.b], writes: std::iter::once(self.sum.h).chain(made).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }
}

impl Lowering for NormAddMatmulVec {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let first = &self.products[0];
        let of = |n: usize| self.products.get(n);
        let rows = |n: usize| of(n).map_or(0, |product| product.w.rows);
        let y = |n: usize| of(n).map_or(Arg::Spare, |product| product.y.into());
        let row = self.sum.flags();
        let params = Params {
            k: first.w.cols,
            rows_a: rows(0),
            rows_b: rows(1),
            rows_c: rows(2),
            has_weight: row.has_weight,
            has_factor: row.has_factor,
            pack: row.pack,
            has_u: row.has_u,
            exchange: cx.caps.subgroup_size,
            eps: self.sum.eps,
            next_eps: row.next_eps,
        };
        let bind = Bind {
            a: self.sum.a.into(),
            b: self.sum.b.into(),
            w: self.sum.w.into(),
            s: self.sum.factor.into(),
            u: row.u.into(),
            h: self.sum.h.into(),
            wa: first.w.into(),
            wb: of(1).unwrap_or(first).w.into(),
            wc: of(2).unwrap_or(first).w.into(),
            ya: y(0),
            yb: y(1),
            yc: y(2),
        };
        let per_row = (0..self.products.len()).map(|n| rows(n).div_ceil(WEIGHT_ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: self.sum.h.shape, per_row })]
    }
}
