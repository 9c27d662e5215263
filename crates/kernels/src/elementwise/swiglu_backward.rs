//! Derivatives of the gated activation of Qwen.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SWIGLU_BACKWARD: "swiglu_backward",
    wgsl: ["elementwise/swiglu_backward.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { gate: Read, up: Read, dy: Read, dgate: Write, dup: Write },
    cpu: cpu_ref::swiglu_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dgate, dup = the derivatives of silu(gate) * up.
#[derive(Clone, Debug)]
pub struct SwigluBackward {
    pub gate: Tensor,
    pub up: Tensor,
    pub dy: Tensor,
    pub dgate: Tensor,
    pub dup: Tensor,
}

parameters! { SwigluBackward }

/// The derivatives of [`swiglu`](crate::ops::swiglu()) by `gate` and by `up`, from the derivative
/// `dy` by its result; all [T, F], f32.
pub fn swiglu_backward(
    rec: &mut Recorder<impl From<SwigluBackward>>,
    gate: Tensor,
    up: Tensor,
    dy: Tensor,
) -> [Tensor; 2] {
    assert_eq!((gate.shape, up.shape.width()), (dy.shape, gate.shape.width()), "swiglu_backward of unequal shapes");
    let [dgate, dup] = [rec.make(gate.shape), rec.make(gate.shape)];
    rec.push(SwigluBackward { gate, up, dy, dgate, dup });
    [dgate, dup]
}

impl Operation for SwigluBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up, self.dy], writes: vec![self.dgate, self.dup] }
    }
}

impl Lowering for SwigluBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.gate.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.gate.shape, workgroup: 256, per_thread: 1 };
        let [gate, up, dy, dgate, dup] = [self.gate, self.up, self.dy, self.dgate, self.dup].map(Into::into);
        vec![Bind { gate, up, dy, dgate, dup }.dispatch(Params { n }, grid)]
    }
}

impl Reference for SwigluBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let (mut dgate, mut dup) = (host.take(self.dgate), host.take(self.dup));
        cpu_ref::swiglu_backward(host.f32(self.gate), host.f32(self.up), host.f32(self.dy), &mut dgate, &mut dup);
        host.put(self.dgate, dgate);
        host.put(self.dup, dup);
    }
}
