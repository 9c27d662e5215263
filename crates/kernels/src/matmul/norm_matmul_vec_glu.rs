//! Both products of a gated activation in f32 of one row, which they norm themselves if it is
//! normed, and the activation, in one kernel. The planner makes it; it is never recorded.

use super::norm_matmul_vec_glu_teams as teams;
use super::norm_matmul_vec_glu_teams::NORM_MATMUL_VEC_GLU_TEAMS;
use super::norm_matmul_vec_teams::serves;
use super::norm_pack_matmul_vec::Normed;
use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_MATMUL_VEC_GLU: "norm_matmul_vec_glu",
    wgsl: [
        "matmul/norm_matmul_vec_glu.wgsl", "matmul/pieces/acts_eights.wgsl", "matmul/pieces/vec_sums.wgsl", activation,
        "shared/norm_share.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind { h: Read, u: Read, gate: Weight(Eights), up: Weight(Eights), y: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1192 },
    variants: {
        SILU: "norm_matmul_vec_glu_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "norm_matmul_vec_glu_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// Results per workgroup.
const RESULTS: u32 = 2;

/// y = activation(gate x) * (up x), with x = norm(h) u. Without an `eps`, x = h.
#[derive(Clone, Debug)]
pub struct NormMatmulVecGlu {
    pub row: Normed,
    pub gate: Product,
    pub up: Product,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub y: Tensor,
}

impl Operation for NormMatmulVecGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }
}

impl Lowering for NormMatmulVecGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (gate, up) = (self.gate.w, self.up.w);
        let params = Params {
            k: gate.cols,
            n: gate.rows,
            has_norm: u32::from(self.row.eps.is_some()),
            has_weight: u32::from(self.row.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.row.eps.unwrap_or(0.0),
        };
        let bind =
            Bind { h: self.row.h.into(), u: self.row.u.into(), gate: gate.into(), up: up.into(), y: self.y.into() };
        let (variant, results) = match serves(&NORM_MATMUL_VEC_GLU_TEAMS, &[gate, up], 2 * teams::RESULTS, cx.caps) {
            true => (if self.gelu { &teams::GELU } else { &teams::SILU }, teams::RESULTS),
            false => (if self.gelu { &GELU } else { &SILU }, RESULTS),
        };
        vec![bind.dispatch(
            variant,
            params,
            Grid::PerRow { lead: self.row.h.shape, per_row: gate.rows.div_ceil(results) },
        )]
    }
}
