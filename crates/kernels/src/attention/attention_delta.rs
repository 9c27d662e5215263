//! What the derivatives of attention need of each query row.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ATTENTION_DELTA: "attention_delta",
    wgsl: ["attention/attention_delta.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { y: Read, dy: Read, lse: Read, stats: Write },
    cpu: cpu_ref::attention_delta,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 1280 },
}

/// stats = lse and the products of y and dy.
#[derive(Clone, Debug)]
pub struct AttentionDelta {
    pub y: Tensor,
    pub dy: Tensor,
    pub lse: Tensor,
    pub stats: Tensor,
}

parameters! { AttentionDelta }

/// stats[t, n] = (lse[t, n], sum_h dy[t, n, h] y[t, n, h]) with the result `y` [T, N, H] of an
/// attention, the derivative `dy` by it, and `lse` [T, N] as
/// [`attention_lse`](crate::ops::backward::attention_lse()) made it; returns [T, N, 2], f32.
pub fn attention_delta(rec: &mut Recorder<impl From<AttentionDelta>>, y: Tensor, dy: Tensor, lse: Tensor) -> Tensor {
    assert_eq!((y.shape, y.shape.heads), (dy.shape, lse.shape.width()), "attention_delta of unequal shapes");
    let stats = rec.make(Shape { dim: 2, ..y.shape });
    rec.push(AttentionDelta { y, dy, lse, stats });
    stats
}

impl Operation for AttentionDelta {
    fn io(&self) -> Io {
        Io { reads: vec![self.y, self.dy, self.lse], writes: vec![self.stats] }
    }
}

impl Lowering for AttentionDelta {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.y.shape;
        let [y, dy, lse, stats] = [self.y, self.dy, self.lse, self.stats].map(Into::into);
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads };
        vec![Bind { y, dy, lse, stats }.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads })]
    }
}

impl Reference for AttentionDelta {
    fn reference(&self, host: &mut Host<'_>) {
        let mut stats = host.take(self.stats);
        let [y, dy, lse] = [self.y, self.dy, self.lse].map(|t| host.f32(t));
        cpu_ref::attention_delta(self.y.shape.dim as usize, y, dy, lse, &mut stats);
        host.put(self.stats, stats);
    }
}
