//! A product of one row, the residual sum, the norm of the sum and its packing in one kernel. The
//! planner makes it; it is never recorded.

use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_VEC_NORM: "matmul_vec_norm",
    wgsl: [
        "matmul/matmul_vec_norm.wgsl", lanes, "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind { x: Read, w: Weight(Units), a: Read, u: Read, h: Write, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 14592 },
    variants: {
        // Each PARTS x 32 lanes compute two of the 32 rows of a block.
        LANES_32: "matmul_vec_norm" { lanes: vary { WG: 512, PARTS: 1 } },
        LANES_64: "matmul_vec_norm_long" needs { threads: 1024, workgroup_bytes: 29184 } { lanes: vary { WG: 1024, PARTS: 2 } },
    },
}

/// h = a + product; packed = h u in 8 bits, as in
/// [`NormPackQ8`](crate::norm::norm_pack_q8::NormPackQ8).
#[derive(Clone, Debug)]
pub struct MatmulVecNorm {
    pub product: Product,
    pub a: Tensor,
    pub h: Tensor,
    pub u: Option<Weight>,
    pub eps: f32,
    pub packed: Tensor,
}

impl Operation for MatmulVecNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.x, self.a], writes: vec![self.h, self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }
}

impl Lowering for MatmulVecNorm {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Product { x, w, .. } = self.product;
        let params = Params {
            k: w.cols,
            n: w.rows,
            has_weight: u32::from(self.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.eps,
        };
        let (h, packed) = (self.h.into(), self.packed.into());
        let bind = Bind { x: x.into(), w: w.into(), a: self.a.into(), u: Arg::from(self.u), h, packed };
        // Long rows have twice as many threads.
        let variant = if w.cols >= cx.caps.table.vec_columns && LANES_64.fits(cx.caps) { &LANES_64 } else { &LANES_32 };
        vec![bind.dispatch(variant, params, Grid::PerRow { lead: x.shape, per_row: w.rows / BLOCK })]
    }
}
