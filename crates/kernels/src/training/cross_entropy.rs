//! The loss of rows of logits.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use gguf::BoxFuture;

kernel! {
    CROSS_ENTROPY: "cross_entropy",
    wgsl: ["training/cross_entropy.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { vocabulary: u32, rows: u32 },
    bindings: Bind { logits: Read, targets: Read, y: Write },
    cpu: cpu_ref::cross_entropy,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = the loss and the logarithm of the sum of the exponentials of each row.
#[derive(Clone, Debug)]
pub struct CrossEntropy {
    pub logits: Tensor,
    pub targets: Tensor,
    pub y: Tensor,
}

parameters! { CrossEntropy }

/// y\[t\] = (lse - logits[t, targets\[t\]], lse) with lse = ln sum_v exp(logits[t, v]); `logits`
/// [T, V], `targets` \[T\] ids; returns [T, 2], f32. A target of V or more has the loss 0.
pub fn cross_entropy(rec: &mut Recorder<impl From<CrossEntropy>>, logits: Tensor, targets: Tensor) -> Tensor {
    assert_eq!(logits.shape.rows, targets.shape.rows, "cross_entropy: a target for each row");
    let y = rec.make(Shape { heads: 1, dim: 2, ..logits.shape });
    rec.push(CrossEntropy { logits, targets, y });
    y
}

impl Operation for CrossEntropy {
    fn io(&self) -> Io {
        Io { reads: vec![self.logits, self.targets], writes: vec![self.y] }
    }
}

impl Lowering for CrossEntropy {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.logits.shape;
        let params = Params { vocabulary: shape.width(), rows: shape.rows };
        let [logits, targets, y] = [self.logits, self.targets, self.y].map(Into::into);
        vec![Bind { logits, targets, y }.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}

impl Reference for CrossEntropy {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        let losses = |host: &Host<'_>, first: usize, logits: &[f32], y: &mut [f32]| {
            cpu_ref::cross_entropy(logits, &host.u32(self.targets)[first..][..y.len() / 2], y);
        };
        Box::pin(host.by_rows_in_turns(self.logits, self.y, losses))
    }
}
