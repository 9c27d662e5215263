//! Derivative of the rectified linear unit.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    RELU_BACKWARD: "relu_backward",
    wgsl: ["elementwise/relu_backward.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, dy: Read, dx: Write },
    cpu: cpu_ref::relu_backward,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx = dy where x > 0, 0 elsewhere.
#[derive(Clone, Debug)]
pub struct ReluBackward {
    pub x: Tensor,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { ReluBackward }

/// The derivative of [`relu`](crate::ops::relu()) by `x`, from the derivative `dy` by its result;
/// both [T, D], f32.
pub fn relu_backward(rec: &mut Recorder<impl From<ReluBackward>>, x: Tensor, dy: Tensor) -> Tensor {
    assert_eq!((dy.shape.rows, dy.shape.width()), (x.shape.rows, x.shape.width()), "relu_backward of unequal shapes");
    let dx = rec.make(x.shape);
    rec.push(ReluBackward { x, dy, dx });
    dx
}

impl Operation for ReluBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for ReluBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.dx.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.dx.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), dy: self.dy.into(), dx: self.dx.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for ReluBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        cpu_ref::relu_backward(host.f32(self.x), host.f32(self.dy), &mut dx);
        host.put(self.dx, dx);
    }
}
