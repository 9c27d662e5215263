//! Derivative of the logarithm of the softmax of rows.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    LOG_SOFTMAX_BACKWARD: "log_softmax_backward",
    wgsl: ["norm/log_softmax_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { y: Read, dy: Read, dx: Write },
    cpu: cpu_ref::log_softmax_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx = dy - exp(y) sum(dy) over the last axis.
#[derive(Clone, Debug)]
pub struct LogSoftmaxBackward {
    pub y: Tensor,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { LogSoftmaxBackward }

/// The derivative of [`log_softmax`](crate::ops::log_softmax()) by its rows, from its result `y`
/// [T, D] or [T, N, H] and the derivative `dy` by it; returns the shape of `y`, f32.
pub fn log_softmax_backward(rec: &mut Recorder<impl From<LogSoftmaxBackward>>, y: Tensor, dy: Tensor) -> Tensor {
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (y.shape.rows, y.shape.width()),
        "log_softmax_backward of unequal shapes"
    );
    let dx = rec.make(y.shape);
    rec.push(LogSoftmaxBackward { y, dy, dx });
    dx
}

impl Operation for LogSoftmaxBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.y, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for LogSoftmaxBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.y.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { y: self.y.into(), dy: self.dy.into(), dx: self.dx.into() }.dispatch(params, grid)]
    }
}

impl Reference for LogSoftmaxBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        cpu_ref::log_softmax_backward(host.f32(self.y), host.f32(self.dy), self.y.shape.dim as usize, &mut dx);
        host.put(self.dx, dx);
    }
}
