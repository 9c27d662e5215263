//! Derivative of a weighted sum of tensors by one of the tensors.

use super::add_weighted::{AddWeighted, RowWeights};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ADD_WEIGHTED_BACKWARD: "add_weighted_backward",
    wgsl: ["elementwise/add_weighted_backward.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, columns: u32, first: u32, shift: f32 },
    bindings: Bind { dy: Read, c: Read, dx: Write },
    cpu: cpu_ref::add_weighted_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx = (c[.., first] + shift) dy.
#[derive(Clone, Debug)]
pub struct AddWeightedBackward {
    /// The weights of the tensor: their column is `first`.
    pub weights: RowWeights,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { AddWeightedBackward: weights }

/// The derivative of `sum` by its tensor number `j`, from the derivative `dy` by its result; both
/// [T, D], f32. The derivative by the base is `dy`.
pub fn add_weighted_backward(
    rec: &mut Recorder<impl From<AddWeightedBackward>>,
    sum: &AddWeighted,
    j: usize,
    dy: Tensor,
) -> Tensor {
    assert!(j < sum.x.len(), "add_weighted_backward: tensor {j} of {}", sum.x.len());
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (sum.y.shape.rows, sum.y.shape.width()),
        "add_weighted_backward of unequal shapes"
    );
    let weights = RowWeights { first: sum.weights.first + j as u32, ..sum.weights };
    let dx = rec.make(sum.x[j].shape);
    rec.push(AddWeightedBackward { weights, dy, dx });
    dx
}

impl Operation for AddWeightedBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.weights.c], writes: vec![self.dx] }
    }
}

impl Lowering for AddWeightedBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let (shape, RowWeights { c, first, shift }) = (self.dx.shape, self.weights);
        let params = Params { n: shape.elements() as u32, dim: shape.width(), columns: c.shape.width(), first, shift };
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        vec![Bind { dy: self.dy.into(), c: c.into(), dx: self.dx.into() }.dispatch(params, grid)]
    }
}

impl Reference for AddWeightedBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        let RowWeights { c, first, shift } = self.weights;
        let columns = c.shape.width() as usize;
        let weights = cpu_ref::RowWeights { c: host.f32(c), columns, first: first as usize, shift: f64::from(shift) };
        cpu_ref::add_weighted_backward(host.f32(self.dy), weights, self.dx.shape.width() as usize, &mut dx);
        host.put(self.dx, dx);
    }
}
