//! The gated activation of Qwen: silu(gate) times up.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SWIGLU: "swiglu",
    wgsl: ["elementwise/swiglu.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { gate: Read, up: Read, y: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = gate / (1 + exp(-gate)) * up.
#[derive(Clone, Debug)]
pub struct Swiglu {
    pub gate: Tensor,
    pub up: Tensor,
    pub y: Tensor,
}

parameters! { Swiglu }
values! { Swiglu: gate, up, y }

/// y = silu(gate) * up, element by element; all [T, F], f32 (Shazeer 2020, arXiv 2002.05202).
pub fn swiglu(rec: &mut Recorder<impl From<Swiglu>>, gate: Tensor, up: Tensor) -> Tensor {
    assert_eq!(gate.shape, up.shape, "swiglu of unequal shapes");
    let y = rec.make(gate.shape);
    rec.push(Swiglu { gate, up, y });
    y
}

impl Operation for Swiglu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], writes: vec![self.y] }
    }
}

impl Lowering for Swiglu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { gate: self.gate.into(), up: self.up.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for Swiglu {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::swiglu(host.f32(self.gate), host.f32(self.up), &mut y);
        host.put(self.y, y);
    }
}
