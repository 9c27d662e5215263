//! Derivative of the loss by rows of logits.

use super::cross_entropy::CrossEntropy;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use gguf::BoxFuture;

kernel! {
    CROSS_ENTROPY_BACKWARD: "cross_entropy_backward",
    wgsl: ["training/cross_entropy_backward.wgsl", "shared/grid.wgsl"],
    params: Params { vocabulary: u32, rows: u32 },
    bindings: Bind { logits: Read, targets: Read, weights: Read, losses: Read, d: Write },
    cpu: cpu_ref::cross_entropy_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// d = the derivative of the weighted losses by the logits.
#[derive(Clone, Debug)]
pub struct CrossEntropyBackward {
    pub logits: Tensor,
    pub targets: Tensor,
    pub weights: Tensor,
    pub losses: Tensor,
    pub d: Tensor,
}

parameters! { CrossEntropyBackward }

/// d[t, v] = weights\[t\] (exp(logits[t, v] - lse\[t\]) - [v = targets\[t\]]): the derivative of
/// sum_t weights\[t\] loss\[t\] by the logits of `loss`; `weights` \[T\] f32; returns [T, V], f32.
/// A target of V or more gives zeros.
pub fn cross_entropy_backward(
    rec: &mut Recorder<impl From<CrossEntropyBackward>>,
    loss: &CrossEntropy,
    weights: Tensor,
) -> Tensor {
    let &CrossEntropy { logits, targets, y: losses } = loss;
    assert_eq!(logits.shape.rows, weights.shape.rows, "cross_entropy_backward: a weight for each row");
    let d = rec.make(logits.shape);
    rec.push(CrossEntropyBackward { logits, targets, weights, losses, d });
    d
}

impl Operation for CrossEntropyBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.logits, self.targets, self.weights, self.losses], writes: vec![self.d] }
    }
}

impl Lowering for CrossEntropyBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.logits.shape;
        let params = Params { vocabulary: shape.width(), rows: shape.rows };
        let [logits, targets, weights, losses, d] =
            [self.logits, self.targets, self.weights, self.losses, self.d].map(Into::into);
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        vec![Bind { logits, targets, weights, losses, d }.dispatch(params, grid)]
    }
}

impl Reference for CrossEntropyBackward {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        let vocabulary = self.logits.shape.width() as usize;
        let backward = move |host: &Host<'_>, first: usize, logits: &[f32], d: &mut [f32]| {
            let rows = first..first + d.len() / vocabulary;
            let targets = &host.u32(self.targets)[rows.clone()];
            let losses = &host.f32(self.losses)[2 * rows.start..2 * rows.end];
            cpu_ref::cross_entropy_backward(logits, targets, &host.f32(self.weights)[rows], losses, d);
        };
        Box::pin(host.by_rows_in_turns(self.logits, self.d, backward))
    }
}
