//! Derivative of the rotary position embedding.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ROPE_BACKWARD: "rope_backward",
    wgsl: ["norm/rope_backward.wgsl", "shared/grid.wgsl"],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32 },
    bindings: Bind { dy: Read, table: Read, dx: Write },
    cpu: cpu_ref::rope_backward,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx = dy rotated back by the angles of `table`.
#[derive(Clone, Debug)]
pub struct RopeBackward {
    pub dy: Tensor,
    pub table: Tensor,
    pub dx: Tensor,
}

parameters! { RopeBackward }

/// The derivative of [`rope`](crate::ops::rope()) with the same `table` [T, dim / 2, 2]: its
/// adjoint, applied to `dy` [T, N, H]. f32.
pub fn rope_backward(rec: &mut Recorder<impl From<RopeBackward>>, dy: Tensor, table: Tensor) -> Tensor {
    assert!(table.shape.dim <= dy.shape.dim, "rope_backward of {} in heads of {}", table.shape.dim, dy.shape.dim);
    let dx = rec.make(dy.shape);
    rec.push(RopeBackward { dy, table, dx });
    dx
}

impl Operation for RopeBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.table], writes: vec![self.dx] }
    }
}

impl Lowering for RopeBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.dy.shape;
        let params = Params { heads: shape.heads, head_dim: shape.dim, dim: self.table.shape.dim, rows: shape.rows };
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        vec![Bind { dy: self.dy.into(), table: self.table.into(), dx: self.dx.into() }.dispatch(params, grid)]
    }
}

impl Reference for RopeBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let (heads, dim) = (self.dy.shape.heads as usize, self.dy.shape.dim as usize);
        let mut dx = host.take(self.dx);
        cpu_ref::rope_backward(host.f32(self.dy), host.f32(self.table), heads, dim, &mut dx);
        host.put(self.dx, dx);
    }
}
