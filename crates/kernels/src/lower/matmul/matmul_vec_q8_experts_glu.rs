//! Both products of few rows with their experts' weights, the gated activation and its packing in
//! one kernel. The planner makes it; it is never recorded.

use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::lower::matmul::matmul_vec_q8_experts::MatmulVecQ8Experts;
use crate::lower::pack::pack_q8::BLOCK;

kernel! {
    MATMUL_VEC_Q8_EXPERTS_GLU: "matmul_vec_q8_experts_glu",
    wgsl: [
        "experts/matmul_vec_q8_experts_glu.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", activation, "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, chosen: u32, slots: u32, exchange: u32
    },
    bindings: Bind { x: Read, gate: Units, up: Units, experts: Read, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 7296 },
    variants: {
        SILU: "matmul_vec_q8_experts_glu_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "matmul_vec_q8_experts_glu_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// packed = 8 bits of activation(gate x) * (up x) for the experts of every row. Each row has the
/// results of all its experts.
#[derive(Clone, Debug)]
pub struct MatmulExpertsGlu {
    pub gate: MatmulVecQ8Experts,
    pub up: MatmulVecQ8Experts,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub packed: Tensor,
}

impl Operation for MatmulExpertsGlu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate.packed, self.gate.of.routes.experts], writes: vec![self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.gate.work(counts).plus(self.up.work(counts))
    }
}

impl Lowering for MatmulExpertsGlu {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (gate, up) = (&self.gate.of, &self.up.of);
        let (experts, n) = (gate.routes.experts, gate.y.shape.dim);
        let bind =
            Bind { x: self.gate.packed.into(), gate: gate.w.into(), up: up.w.into(), experts: experts.into(), packed: self.packed.into() };
        let params = Params {
            k: gate.w.cols,
            n,
            gate_stride: gate.stride(),
            gate_first: gate.first,
            up_stride: up.stride(),
            up_first: up.first,
            chosen: experts.shape.dim,
            slots: experts.shape.elements() as u32,
            exchange: cx.caps.subgroup_size,
        };
        let grid = Grid::PerRow { lead: experts.shape, per_row: experts.shape.dim * (n / BLOCK) };
        vec![bind.dispatch(if self.gelu { &GELU } else { &SILU }, params, grid)]
    }
}
