//! Soft limit on logits and attention scores.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use gguf::BoxFuture;

kernel! {
    SOFTCAP: "softcap",
    wgsl: ["elementwise/softcap.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, cap: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::softcap,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = cap tanh(x / cap).
#[derive(Clone, Debug)]
pub struct Softcap {
    pub x: Tensor,
    pub cap: f32,
    pub y: Tensor,
}

parameters! { Softcap: cap }
values! { Softcap: x, y }

/// y = cap * tanh(x / cap), element by element; `x` [T, D], f32 (Gemma 2 report, arXiv 2408.00118).
pub fn softcap(rec: &mut Recorder<impl From<Softcap>>, x: Tensor, cap: f32) -> Tensor {
    assert!(cap > 0.0, "softcap of {cap}");
    let y = rec.make(x.shape);
    rec.push(Softcap { x, cap, y });
    y
}

impl Operation for Softcap {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Softcap {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n, cap: self.cap }, grid)]
    }
}

impl Reference for Softcap {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(host.by_rows_in_turns(self.x, self.y, |_, _, x, y| cpu_ref::softcap(x, f64::from(self.cap), y)))
    }
}
