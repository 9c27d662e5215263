//! Multiplication by one number.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SCALE: "scale",
    wgsl: ["elementwise/scale.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, s: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::scale,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = x * s.
#[derive(Clone, Debug)]
pub struct Scale {
    pub x: Tensor,
    pub s: f32,
    pub y: Tensor,
}

parameters! { Scale: s }
values! { Scale: x, y }

/// y = x * s, element by element; `x` [T, D], f32.
pub fn scale(rec: &mut Recorder<impl From<Scale>>, x: Tensor, s: f32) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Scale { x, s, y });
    y
}

impl Operation for Scale {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Scale {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        vec![dispatch(self.x, self.s, self.y)]
    }
}

/// The kernel call of y = x * s.
pub(crate) fn dispatch(x: Tensor, s: f32, y: Tensor) -> Dispatch {
    let grid = Grid::Elements { lead: y.shape, workgroup: 256, per_thread: 1 };
    Bind { x: x.into(), y: y.into() }.dispatch(Params { n: y.shape.elements() as u32, s }, grid)
}

impl Reference for Scale {
    fn reference(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::scale(x, f64::from(self.s), y));
    }
}
