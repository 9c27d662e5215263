//! Sigmoid linear unit.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SILU: "silu",
    wgsl: ["elementwise/silu.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::silu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = x / (1 + exp(-x)).
#[derive(Clone, Debug)]
pub struct Silu {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { Silu }
values! { Silu: x, y }

/// y = x / (1 + exp(-x)), element by element; `x` [T, D], f32 (Elfwing et al. 2017, arXiv
/// 1702.03118).
pub fn silu(rec: &mut Recorder<impl From<Silu>>, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Silu { x, y });
    y
}

impl Operation for Silu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Silu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for Silu {
    fn reference(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::silu(x, y));
    }
}
