//! Both products of a gated activation, the activation and its packing in one kernel, of one row or
//! of a few. The planner makes it; it is never recorded.

use super::matmul_rows8_glu;
use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_VEC_GLU: "matmul_vec_glu",
    wgsl: [
        "matmul/matmul_vec_glu.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", activation, "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, exchange: u32 },
    bindings: Bind { x: Read, gate: Weight(Units), up: Weight(Units), packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 7296 },
    variants: {
        SILU: "matmul_vec_glu_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "matmul_vec_glu_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// packed = 8 bits of activation(gate x) * (up x), row by row.
#[derive(Clone, Debug)]
pub struct MatmulGlu {
    pub gate: Product,
    pub up: Product,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub packed: Tensor,
}

impl Operation for MatmulGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate.x], writes: vec![self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }
}

impl Lowering for MatmulGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if self.gate.x.shape.rows > 1 {
            return vec![matmul_rows8_glu::lower(self, cx)];
        }
        let w = self.gate.w;
        let bind = Bind { x: self.gate.x.into(), gate: w.into(), up: self.up.w.into(), packed: self.packed.into() };
        let params = Params { k: w.cols, n: w.rows, exchange: cx.caps.subgroup_size };
        let grid = Grid::PerRow { lead: self.gate.x.shape, per_row: w.rows / BLOCK };
        vec![bind.dispatch(if self.gelu { &GELU } else { &SILU }, params, grid)]
    }
}
