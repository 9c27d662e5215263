//! A gated activation whose readers want f16. The planner makes it; it is never recorded.

use super::pack_f16::{PackF16, pitches};
use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GLU_PACK_F16: "glu_pack_f16",
    wgsl: ["norm/glu_pack_f16.wgsl", activation, "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, up_dim: u32, start: u32 },
    bindings: Bind { gate: Read, up: Read, scales: Write, halves: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 1024, workgroup_bytes: 20480 },
    variants: {
        SILU: "glu_pack_f16_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "glu_pack_f16_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// scales, halves = activation(gate) * up[.., start..] in f16.
#[derive(Clone, Debug)]
pub struct GluPackF16 {
    pub gate: Tensor,
    pub up: Tensor,
    pub start: u32,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub pack: PackF16,
}

impl Operation for GluPackF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], ..self.pack.io() }
    }
}

impl Lowering for GluPackF16 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.gate.shape;
        let (row_pitch, slab_pitch) = pitches(shape.width(), self.pack.slab);
        let [gate, up, scales, halves] = [self.gate, self.up, self.pack.scales, self.pack.halves].map(Into::into);
        let (dim, up_dim, start) = (shape.width(), self.up.shape.width(), self.start);
        let params = Params { dim, rows: shape.rows, row_pitch, slab_pitch, up_dim, start };
        let variant = if self.gelu { &GELU } else { &SILU };
        vec![Bind { gate, up, scales, halves }.dispatch(variant, params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}
