//! Both products of a gated activation of one normed row, with the packing of that row and of the
//! result, in one kernel. The planner makes it; it is never recorded.

use super::matmul_vec_glu::MatmulGlu;
use super::norm_pack_matmul_vec::Normed;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::pack_q8::BLOCK;

kernel! {
    NORM_PACK_MATMUL_VEC_GLU: "norm_pack_matmul_vec_glu",
    wgsl: [
        "matmul/norm_pack_matmul_vec_glu.wgsl", "matmul/pieces/acts_norm.wgsl", "shared/acts_own.wgsl", "shared/norm_share.wgsl",
        activation, "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind { h: Read, u: Read, gate: Weight(Units), up: Weight(Units), packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 18304 },
    variants: {
        SILU: "norm_pack_matmul_vec_glu_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "norm_pack_matmul_vec_glu_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// packed = activation(gate x) * (up x) in 8 bits, with x = norm(h) u.
#[derive(Clone, Debug)]
pub struct NormPackMatmulVecGlu {
    pub row: Normed,
    pub glu: MatmulGlu,
}

impl Operation for NormPackMatmulVecGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: vec![self.glu.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.glu.work(counts)
    }
}

impl Lowering for NormPackMatmulVecGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let w = self.glu.gate.w;
        let params = Params {
            k: w.cols,
            n: w.rows,
            has_norm: u32::from(self.row.eps.is_some()),
            has_weight: u32::from(self.row.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.row.eps.unwrap_or(0.0),
        };
        let (h, u) = (self.row.h.into(), self.row.u.into());
        let bind = Bind { h, u, gate: w.into(), up: self.glu.up.w.into(), packed: self.glu.packed.into() };
        let grid = Grid::PerRow { lead: self.row.h.shape, per_row: w.rows / BLOCK };
        vec![bind.dispatch(if self.glu.gelu { &GELU } else { &SILU }, params, grid)]
    }
}
