//! Derivative of rows times the sigmoid of one number per row, by that number.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MUL_SIGMOID_BACKWARD: "mul_sigmoid_backward",
    wgsl: ["elementwise/mul_sigmoid_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, gate: Read, dy: Read, dgate: Write },
    cpu: cpu_ref::mul_sigmoid_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dgate\[t\] = s (1 - s) sum_d dy[t, d] x[t, d] with the sigmoid s of gate\[t\].
#[derive(Clone, Debug)]
pub struct MulSigmoidBackward {
    pub x: Tensor,
    pub gate: Tensor,
    pub dy: Tensor,
    pub dgate: Tensor,
}

parameters! { MulSigmoidBackward }

/// The derivative of [`mul_sigmoid`](crate::ops::mul_sigmoid()) by `gate` [T, 1], from the
/// derivative `dy` [T, D] by its result; returns [T, 1], f32. The derivative by `x` is
/// [`mul_sigmoid`](crate::ops::mul_sigmoid()) of `dy`.
pub fn mul_sigmoid_backward(
    rec: &mut Recorder<impl From<MulSigmoidBackward>>,
    x: Tensor,
    gate: Tensor,
    dy: Tensor,
) -> Tensor {
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "mul_sigmoid_backward of unequal shapes"
    );
    assert_eq!((gate.shape.rows, gate.shape.width()), (x.shape.rows, 1), "mul_sigmoid_backward: one gate per row");
    let dgate = rec.make(gate.shape);
    rec.push(MulSigmoidBackward { x, gate, dy, dgate });
    dgate
}

impl Operation for MulSigmoidBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.gate, self.dy], writes: vec![self.dgate] }
    }
}

impl Lowering for MulSigmoidBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.x.shape.width(), rows: self.x.shape.rows };
        let [x, gate, dy, dgate] = [self.x, self.gate, self.dy, self.dgate].map(Into::into);
        vec![Bind { x, gate, dy, dgate }.dispatch(params, Grid::PerRow { lead: self.x.shape, per_row: 1 })]
    }
}

impl Reference for MulSigmoidBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dgate = host.take(self.dgate);
        let [x, gate, dy] = [self.x, self.gate, self.dy].map(|t| host.f32(t));
        cpu_ref::mul_sigmoid_backward(x, gate, dy, &mut dgate);
        host.put(self.dgate, dgate);
    }
}
