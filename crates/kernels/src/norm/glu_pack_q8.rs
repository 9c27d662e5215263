//! A gated activation whose readers want 8 bits. The planner makes it; it is never recorded.

use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GLU_PACK_Q8: "glu_pack_q8",
    wgsl: ["norm/glu_pack_q8.wgsl", activation, "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32, up_k: u32, start: u32 },
    bindings: Bind { gate: Read, up: Read, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 1536 },
    variants: {
        SILU: "glu_pack_q8_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "glu_pack_q8_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

const WG: u32 = 128;

/// packed = activation(gate) * up[.., start..] in 8 bits.
#[derive(Clone, Debug)]
pub struct GluPackQ8 {
    pub gate: Tensor,
    pub up: Tensor,
    pub start: u32,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub packed: Tensor,
}

impl Operation for GluPackQ8 {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], writes: vec![self.packed] }
    }
}

impl Lowering for GluPackQ8 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.gate.shape;
        let bind = Bind { gate: self.gate.into(), up: self.up.into(), packed: self.packed.into() };
        let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
        let params = Params { k: shape.width(), rows: shape.rows, up_k: self.up.shape.width(), start: self.start };
        vec![bind.dispatch(if self.gelu { &GELU } else { &SILU }, params, grid)]
    }
}
