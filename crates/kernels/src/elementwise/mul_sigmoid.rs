//! Rows multiplied by the sigmoid of one number per row, as in Qwen2's shared expert.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MUL_SIGMOID: "mul_sigmoid",
    wgsl: ["elementwise/mul_sigmoid.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32 },
    bindings: Bind { x: Read, gate: Read, y: Write },
    cpu: cpu_ref::mul_sigmoid,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y\[t\] = x\[t\] / (1 + exp(-gate\[t\])).
#[derive(Clone, Debug)]
pub struct MulSigmoid {
    pub x: Tensor,
    pub gate: Tensor,
    pub y: Tensor,
}

parameters! { MulSigmoid }
values! { MulSigmoid: x, gate, y }

/// y[t, d] = x[t, d] / (1 + exp(-gate\[t\])); `x` [T, D], `gate` [T, 1]; returns [T, D], f32.
pub fn mul_sigmoid(rec: &mut Recorder<impl From<MulSigmoid>>, x: Tensor, gate: Tensor) -> Tensor {
    assert_eq!((gate.shape.rows, gate.shape.width()), (x.shape.rows, 1), "mul_sigmoid: one gate per row");
    let y = rec.make(x.shape);
    rec.push(MulSigmoid { x, gate, y });
    y
}

impl Operation for MulSigmoid {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.gate], writes: vec![self.y] }
    }
}

impl Lowering for MulSigmoid {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { n: self.y.shape.elements() as u32, dim: self.y.shape.width() };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), gate: self.gate.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for MulSigmoid {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::mul_sigmoid(host.f32(self.x), host.f32(self.gate), &mut y);
        host.put(self.y, y);
    }
}
