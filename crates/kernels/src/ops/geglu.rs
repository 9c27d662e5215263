//! The gated activation of Gemma: gelu(gate) times up.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    GEGLU: "geglu",
    entry: "geglu",
    wgsl: ["geglu.wgsl", "shared/grid.wgsl", "shared/gelu.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { gate: Read, up: Read, y: Write },
    cpu: cpu_ref::geglu,
    nmse: 1e-10,
}

/// y = gelu(gate) * up, tanh form.
#[derive(Clone, Debug)]
pub struct Geglu {
    pub gate: Tensor,
    pub up: Tensor,
    pub y: Tensor,
}

/// y = gelu(gate) * up with the tanh form of GELU, element by element; all [T, F], f32 (Shazeer 2020, arXiv 2002.05202).
pub fn geglu(rec: &mut Recorder, gate: Tensor, up: Tensor) -> Tensor {
    assert_eq!(gate.shape, up.shape, "geglu of unequal shapes");
    let y = rec.make(gate.shape);
    rec.push(Geglu { gate, up, y });
    y
}

impl Operation for Geglu {
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
        cpu_ref::geglu(host.f32(self.gate), host.f32(self.up), &mut y);
        host.put(self.y, y);
    }
}

/// Gates from strongly negative to strongly positive; the first is positive, as in [`super::gelu()`].
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut values = g.values((rows * dim) as usize);
    values[0] = values[0].abs();
    let gate = case.given(Shape::new(Lead::Step, rows, dim), values);
    let up = case.tensor(g, dim);
    let y = geglu(&mut case.rec, gate, up);
    case.expect(y);
    case
}
