//! Both products of a gated activation and its packing. The same kernel computes the residual sum
//! and norm and packs the row that they read. The planner makes it; it is never recorded.

use super::matmul_vec_glu::MatmulGlu;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::norm_add::NormAdd;

kernel! {
    NORM_ADD_MATMUL_VEC_GLU: "norm_add_matmul_vec_glu",
    wgsl: [
        "matmul/norm_add_matmul_vec_glu.wgsl", "matmul/pieces/acts_norm_add.wgsl", "matmul/pieces/acts_norm_add_quads.wgsl",
        "shared/acts_own.wgsl", "shared/norm_share.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32
    },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, u: Read, h: Write, gate: Weight(Units), up: Weight(Units), packed: Write },
    cpu: cpu_ref::geglu,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 18496 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 64;

/// packed = gelu(gate x) * (up x) in 8 bits, where x is the packed sum. No other operation reads x.
#[derive(Clone, Debug)]
pub struct NormAddMatmulVecGlu {
    pub sum: NormAdd,
    pub glu: MatmulGlu,
}

impl Operation for NormAddMatmulVecGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.sum.a, self.sum.b], writes: vec![self.sum.h, self.glu.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.glu.work(counts)
    }
}

impl Lowering for NormAddMatmulVecGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (sum, w) = (&self.sum, self.glu.gate.w);
        let row = sum.flags();
        let params = Params {
            k: w.cols,
            n: w.rows,
            has_weight: row.has_weight,
            has_factor: row.has_factor,
            pack: row.pack,
            has_u: row.has_u,
            exchange: cx.caps.subgroup_size,
            eps: sum.eps,
            next_eps: row.next_eps,
        };
        let bind = Bind {
            a: sum.a.into(),
            b: sum.b.into(),
            w: sum.w.into(),
            s: sum.factor.into(),
            u: row.u.into(),
            h: sum.h.into(),
            gate: w.into(),
            up: self.glu.up.w.into(),
            packed: self.glu.packed.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: sum.h.shape, per_row: w.rows.div_ceil(WEIGHT_ROWS) })]
    }
}
