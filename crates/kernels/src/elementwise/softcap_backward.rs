//! Derivative of the soft limit on logits and attention scores.

use super::softcap::Softcap;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use gguf::BoxFuture;

kernel! {
    SOFTCAP_BACKWARD: "softcap_backward",
    wgsl: ["elementwise/softcap_backward.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, cap: f32 },
    bindings: Bind { y: Read, dy: Read, dx: Write },
    cpu: cpu_ref::softcap_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx = dy (1 - (y / cap)^2).
#[derive(Clone, Debug)]
pub struct SoftcapBackward {
    pub y: Tensor,
    pub cap: f32,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { SoftcapBackward: cap }

/// The derivative of `limit` by its operand, from the derivative `dy` by its result; [T, D], f32.
pub fn softcap_backward(rec: &mut Recorder<impl From<SoftcapBackward>>, limit: &Softcap, dy: Tensor) -> Tensor {
    let &Softcap { y, cap, .. } = limit;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (y.shape.rows, y.shape.width()),
        "softcap_backward of unequal shapes"
    );
    let dx = rec.make(y.shape);
    rec.push(SoftcapBackward { y, cap, dy, dx });
    dx
}

impl Operation for SoftcapBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.y, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for SoftcapBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        let params = Params { n: self.y.shape.elements() as u32, cap: self.cap };
        vec![Bind { y: self.y.into(), dy: self.dy.into(), dx: self.dx.into() }.dispatch(params, grid)]
    }
}

impl Reference for SoftcapBackward {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        let backward = |host: &Host<'_>, first: usize, dy: &[f32], dx: &mut [f32]| {
            let y = &host.f32(self.y)[first * self.y.shape.width() as usize..][..dx.len()];
            cpu_ref::softcap_backward(y, dy, f64::from(self.cap), dx);
        };
        Box::pin(host.by_rows_in_turns(self.dy, self.dx, backward))
    }
}
