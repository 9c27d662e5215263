//! Gaussian error linear unit, tanh form.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    GELU: "gelu",
    entry: "gelu",
    wgsl: ["gelu.wgsl", "shared/grid.wgsl", "shared/gelu.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::gelu,
    nmse: 1e-10,
}

/// y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
#[derive(Clone, Debug)]
pub struct Gelu {
    pub x: Tensor,
    pub y: Tensor,
}

/// y = gelu(x) in its tanh form, element by element; `x` [T, D], f32 (Hendrycks & Gimpel 2016, arXiv 1606.08415).
pub fn gelu(rec: &mut Recorder, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Gelu { x, y });
    y
}

impl Operation for Gelu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::gelu(x, y));
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
    let y = gelu(&mut case.rec, x);
    case.expect(y);
    case
}
