//! Derivative of the sparsity by a cut-off from mean and deviation.

use super::gaussian_top_k::GaussianTopK;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GAUSSIAN_TOP_K_BACKWARD: "gaussian_top_k_backward",
    wgsl: ["norm/gaussian_top_k_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, multiplier: f32 },
    bindings: Bind { x: Read, y: Read, dy: Read, dx: Write },
    cpu: cpu_ref::gaussian_top_k_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx = the derivative of max(x - (mean(x) + multiplier deviation(x)), 0).
#[derive(Clone, Debug)]
pub struct GaussianTopKBackward {
    pub x: Tensor,
    pub y: Tensor,
    pub multiplier: f32,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { GaussianTopKBackward: multiplier }

/// The derivative of `cut` by its rows, from the derivative `dy` by its result; both [T, D], f32.
/// The cut-off moves with the mean and with the deviation of a row.
pub fn gaussian_top_k_backward(
    rec: &mut Recorder<impl From<GaussianTopKBackward>>,
    cut: &GaussianTopK,
    dy: Tensor,
) -> Tensor {
    let &GaussianTopK { x, multiplier, y } = cut;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "gaussian_top_k_backward of unequal shapes"
    );
    let dx = rec.make(x.shape);
    rec.push(GaussianTopKBackward { x, y, multiplier, dy, dx });
    dx
}

impl Operation for GaussianTopKBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.y, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for GaussianTopKBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, multiplier: self.multiplier };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        let [x, y, dy, dx] = [self.x, self.y, self.dy, self.dx].map(Into::into);
        vec![Bind { x, y, dy, dx }.dispatch(params, grid)]
    }
}

impl Reference for GaussianTopKBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        let (dim, multiplier) = (self.x.shape.dim as usize, f64::from(self.multiplier));
        let [x, y, dy] = [self.x, self.y, self.dy].map(|t| host.f32(t));
        cpu_ref::gaussian_top_k_backward(x, y, dy, dim, multiplier, &mut dx);
        host.put(self.dx, dx);
    }
}
