//! Soft limit on logits and attention scores.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::Tensor;

kernel! {
    SOFTCAP: "softcap",
    entry: "softcap",
    wgsl: ["softcap.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, cap: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::softcap,
    nmse: 1e-10,
}

/// y = cap tanh(x / cap).
#[derive(Clone, Debug)]
pub struct Softcap {
    pub x: Tensor,
    pub cap: f32,
    pub y: Tensor,
}

/// y = cap * tanh(x / cap), element by element; `x` [T, D], f32 (Gemma 2 report, arXiv 2408.00118).
pub fn softcap(rec: &mut Recorder, x: Tensor, cap: f32) -> Tensor {
    assert!(cap > 0.0, "softcap of {cap}");
    let y = rec.make(x.shape);
    rec.push(Softcap { x, cap, y });
    y
}

impl Operation for Softcap {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n, cap: self.cap }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::softcap(x, f64::from(self.cap), y));
    }
}

/// From inputs far below the cap, where the result is the input, to saturation.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let cap = g.pick(&[30.0, 50.0, 8.0, 0.5]);
    let y = softcap(&mut case.rec, x, cap);
    case.expect(y);
    case
}
