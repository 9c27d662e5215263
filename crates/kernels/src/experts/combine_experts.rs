//! The weighted sum of the results of a row's experts.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    COMBINE_EXPERTS: "combine_experts",
    wgsl: ["experts/combine_experts.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, k: u32 },
    bindings: Bind { x: Read, weights: Read, y: Write },
    cpu: cpu_ref::combine_experts,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y\[t\] = sum of weights[t, j] x[t, j].
#[derive(Clone, Debug)]
pub struct CombineExperts {
    pub x: Tensor,
    pub weights: Tensor,
    pub y: Tensor,
}

parameters! { CombineExperts }
values! { CombineExperts: x, weights, y }

/// y[t, d] = sum_j weights[t, j] x[t, j, d]; `x` [T, k, D], `weights` [T, k]; returns [T, D], f32.
pub fn combine_experts(rec: &mut Recorder<impl From<CombineExperts>>, x: Tensor, weights: Tensor) -> Tensor {
    assert_eq!(
        (x.shape.rows, x.shape.heads),
        (weights.shape.rows, weights.shape.width()),
        "combine_experts: a weight per choice"
    );
    let y = rec.make(Shape { heads: 1, ..x.shape });
    rec.push(CombineExperts { x, weights, y });
    y
}

impl Operation for CombineExperts {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.weights], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let (rows, k, dim) =
            (u64::from(self.x.shape.rows_at(counts)), u64::from(self.x.shape.heads), u64::from(self.x.shape.dim));
        Work { flops: 2 * rows * k * dim, bytes: 4 * rows * (k * dim + k + dim), weight_bytes: 0 }
    }
}

impl Lowering for CombineExperts {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { n: self.y.shape.elements() as u32, dim: self.y.shape.dim, k: self.x.shape.heads };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), weights: self.weights.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for CombineExperts {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::combine_experts(host.f32(self.x), host.f32(self.weights), self.y.shape.dim as usize, &mut y);
        host.put(self.y, y);
    }
}
