//! The gated activation of Qwen: silu(gate) times up.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::Tensor;

kernel! {
    SWIGLU: "swiglu",
    entry: "swiglu",
    wgsl: ["swiglu.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { gate: Read, up: Read, y: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
}

/// y = gate / (1 + exp(-gate)) * up.
#[derive(Clone, Debug)]
pub struct Swiglu {
    pub gate: Tensor,
    pub up: Tensor,
    pub y: Tensor,
}

/// y = silu(gate) * up, element by element; all [T, F], f32 (Shazeer 2020, arXiv 2002.05202).
pub fn swiglu(rec: &mut Recorder, gate: Tensor, up: Tensor) -> Tensor {
    assert_eq!(gate.shape, up.shape, "swiglu of unequal shapes");
    let y = rec.make(gate.shape);
    rec.push(Swiglu { gate, up, y });
    y
}

impl Operation for Swiglu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { gate: self.gate.into(), up: self.up.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::swiglu(host.f32(self.gate), host.f32(self.up), &mut y);
        host.put(self.y, y);
    }
}

/// Gates from strongly negative to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let (gate, up) = (case.tensor(g, dim), case.tensor(g, dim));
    let y = swiglu(&mut case.rec, gate, up);
    case.expect(y);
    case
}
