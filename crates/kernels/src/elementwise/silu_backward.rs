//! Derivative of the sigmoid linear unit.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SILU_BACKWARD: "silu_backward",
    wgsl: ["elementwise/silu_backward.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, dy: Read, dx: Write },
    cpu: cpu_ref::silu_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx = dy s (1 + x (1 - s)) with the sigmoid s of x.
#[derive(Clone, Debug)]
pub struct SiluBackward {
    pub x: Tensor,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { SiluBackward }

/// The derivative of [`silu`](crate::ops::silu()) by `x`, from the derivative `dy` by its result;
/// both [T, D], f32.
pub fn silu_backward(rec: &mut Recorder<impl From<SiluBackward>>, x: Tensor, dy: Tensor) -> Tensor {
    assert_eq!((dy.shape.rows, dy.shape.width()), (x.shape.rows, x.shape.width()), "silu_backward of unequal shapes");
    let dx = rec.make(x.shape);
    rec.push(SiluBackward { x, dy, dx });
    dx
}

impl Operation for SiluBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for SiluBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.dx.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.dx.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), dy: self.dy.into(), dx: self.dx.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for SiluBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        cpu_ref::silu_backward(host.f32(self.x), host.f32(self.dy), &mut dx);
        host.put(self.dx, dx);
    }
}
