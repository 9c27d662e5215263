//! Softmax of rows or of heads.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SOFTMAX: "softmax",
    wgsl: ["norm/softmax.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::softmax,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = exp(x) / sum(exp(x)) over the last axis.
#[derive(Clone, Debug)]
pub struct Softmax {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { Softmax }
values! { Softmax: x, y }

/// y = exp(x - max) / sum exp(x - max) over the last axis of `x` [T, D] or [T, N, H], f32; each row
/// has a finite element.
pub fn softmax(rec: &mut Recorder<impl From<Softmax>>, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Softmax { x, y });
    y
}

impl Operation for Softmax {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Softmax {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for Softmax {
    fn reference(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::softmax(x, dim, y));
    }
}
