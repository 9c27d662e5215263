//! Derivative of a weighted sum of tensors by the weights.

use super::add_weighted::AddWeighted;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ADD_WEIGHTED_BACKWARD_C: "add_weighted_backward_c",
    wgsl: ["elementwise/add_weighted_backward_c.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, count: u32 },
    bindings: Bind { dy: Read, x0: Read, x1: Read, x2: Read, x3: Read, dc: Write },
    cpu: cpu_ref::add_weighted_backward_c,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dc[t, j] = sum_d dy[t, d] x_j[t, d].
#[derive(Clone, Debug)]
pub struct AddWeightedBackwardC {
    pub x: Vec<Tensor>,
    pub dy: Tensor,
    pub dc: Tensor,
}

parameters! { AddWeightedBackwardC }

/// The derivative of `sum` by the columns of its weights that it reads, from the derivative `dy`
/// [T, D] by its result; returns [T, J] for J tensors, f32.
pub fn add_weighted_backward_c(
    rec: &mut Recorder<impl From<AddWeightedBackwardC>>,
    sum: &AddWeighted,
    dy: Tensor,
) -> Tensor {
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (sum.y.shape.rows, sum.y.shape.width()),
        "add_weighted_backward_c of unequal shapes"
    );
    let dc = rec.make(Shape { heads: 1, dim: sum.x.len() as u32, ..sum.weights.c.shape });
    rec.push(AddWeightedBackwardC { x: sum.x.clone(), dy, dc });
    dc
}

impl Operation for AddWeightedBackwardC {
    fn io(&self) -> Io {
        Io { reads: [&[self.dy], &self.x[..]].concat(), writes: vec![self.dc] }
    }
}

impl Lowering for AddWeightedBackwardC {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Self { x, dy, dc } = self;
        let params = Params { dim: dy.shape.width(), rows: dy.shape.rows, count: x.len() as u32 };
        let at = |j: usize| x.get(j).copied().unwrap_or(x[0]).into();
        let bind = Bind { dy: (*dy).into(), x0: at(0), x1: at(1), x2: at(2), x3: at(3), dc: (*dc).into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: dy.shape, per_row: 1 })]
    }
}

impl Reference for AddWeightedBackwardC {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dc = host.take(self.dc);
        let x: Vec<&[f32]> = self.x.iter().map(|x| host.f32(*x)).collect();
        cpu_ref::add_weighted_backward_c(host.f32(self.dy), &x, self.dy.shape.width() as usize, &mut dc);
        host.put(self.dc, dc);
    }
}
