//! Sigmoid linear unit.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    SILU: "silu",
    entry: "silu",
    wgsl: ["silu.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::silu,
    nmse: 1e-10,
}

/// y = x / (1 + exp(-x)).
#[derive(Clone, Debug)]
pub struct Silu {
    pub x: Tensor,
    pub y: Tensor,
}

/// y = x / (1 + exp(-x)), element by element; `x` [T, D], f32 (Elfwing et al. 2017, arXiv 1702.03118).
pub fn silu(rec: &mut Recorder, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Silu { x, y });
    y
}

impl Operation for Silu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::silu(x, y));
    }
}

/// From strongly negative to strongly positive; the first is positive, since far on the left all but the absolute error
/// depends on how a driver rounds the argument of exp.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut values = g.values((rows * dim) as usize);
    values[0] = values[0].abs();
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let y = silu(&mut case.rec, x);
    case.expect(y);
    case
}
