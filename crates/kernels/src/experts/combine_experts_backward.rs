//! Derivatives of the weighted sum of the results of a row's experts.

use super::combine_experts::CombineExperts;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    COMBINE_EXPERTS_BACKWARD: "combine_experts_backward",
    wgsl: ["experts/combine_experts_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, slots: u32, k: u32 },
    bindings: Bind { x: Read, weights: Read, dy: Read, dx: Write, dweights: Write },
    cpu: cpu_ref::combine_experts_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx[t, j] = weights[t, j] dy\[t\] and dweights[t, j] = the product of dy\[t\] and x[t, j].
#[derive(Clone, Debug)]
pub struct CombineExpertsBackward {
    pub x: Tensor,
    pub weights: Tensor,
    pub dy: Tensor,
    pub dx: Tensor,
    pub dweights: Tensor,
}

parameters! { CombineExpertsBackward }

/// The derivatives of `sum` by the experts' results [T, k, D] and by their weights [T, k], from the
/// derivative `dy` [T, D] by its result; f32.
pub fn combine_experts_backward(
    rec: &mut Recorder<impl From<CombineExpertsBackward>>,
    sum: &CombineExperts,
    dy: Tensor,
) -> [Tensor; 2] {
    let &CombineExperts { x, weights, y } = sum;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (y.shape.rows, y.shape.width()),
        "combine_experts_backward of unequal shapes"
    );
    let [dx, dweights] = [rec.make(x.shape), rec.make(weights.shape)];
    rec.push(CombineExpertsBackward { x, weights, dy, dx, dweights });
    [dx, dweights]
}

impl Operation for CombineExpertsBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.weights, self.dy], writes: vec![self.dx, self.dweights] }
    }
}

impl Lowering for CombineExpertsBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, slots: shape.rows * shape.heads, k: shape.heads };
        let [x, weights, dy, dx, dweights] = [self.x, self.weights, self.dy, self.dx, self.dweights].map(Into::into);
        vec![Bind { x, weights, dy, dx, dweights }.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads })]
    }
}

impl Reference for CombineExpertsBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let (mut dx, mut dweights) = (host.take(self.dx), host.take(self.dweights));
        let [x, weights, dy] = [self.x, self.weights, self.dy].map(|t| host.f32(t));
        cpu_ref::combine_experts_backward(x, weights, dy, self.x.shape.dim as usize, &mut dx, &mut dweights);
        host.put(self.dx, dx);
        host.put(self.dweights, dweights);
    }
}
