//! Sparsity: elements below a cut-off are set to 0. The cut-off follows from the mean and the
//! deviation of the row.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GAUSSIAN_TOP_K: "gaussian_top_k",
    wgsl: ["norm/gaussian_top_k.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, multiplier: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::gaussian_top_k,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = max(x - (mean(x) + multiplier * deviation(x)), 0) over the last axis.
#[derive(Clone, Debug)]
pub struct GaussianTopK {
    pub x: Tensor,
    pub multiplier: f32,
    pub y: Tensor,
}

parameters! { GaussianTopK: multiplier }
values! { GaussianTopK: x, y }

/// y = max(x - (mean(x) + multiplier * deviation(x)), 0) over the last axis of `x` [T, D], with the
/// biased deviation. f32.
pub fn gaussian_top_k(rec: &mut Recorder<impl From<GaussianTopK>>, x: Tensor, multiplier: f32) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(GaussianTopK { x, multiplier, y });
    y
}

impl Operation for GaussianTopK {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for GaussianTopK {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, multiplier: self.multiplier };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for GaussianTopK {
    fn reference(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::gaussian_top_k(x, dim, f64::from(self.multiplier), y));
    }
}
