//! Rectified linear unit.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    RELU: "relu",
    wgsl: ["elementwise/relu.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::relu,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = max(x, 0).
#[derive(Clone, Debug)]
pub struct Relu {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { Relu }
values! { Relu: x, y }

/// y = max(x, 0), element by element; `x` [T, D], f32 (Nair & Hinton 2010).
pub fn relu(rec: &mut Recorder<impl From<Relu>>, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Relu { x, y });
    y
}

impl Operation for Relu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Relu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for Relu {
    fn reference(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::relu(x, y));
    }
}
