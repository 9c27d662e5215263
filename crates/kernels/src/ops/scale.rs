//! Multiplication by one number.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::Tensor;

kernel! {
    SCALE: "scale",
    entry: "scale",
    wgsl: ["scale.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, s: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::scale,
    nmse: 1e-12,
}

/// y = x * s.
#[derive(Clone, Debug)]
pub struct Scale {
    pub x: Tensor,
    pub s: f32,
    pub y: Tensor,
}

/// y = x * s, element by element; `x` [T, D], f32.
pub fn scale(rec: &mut Recorder, x: Tensor, s: f32) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Scale { x, s, y });
    y
}

impl Operation for Scale {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n, s: self.s }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::scale(x, f64::from(self.s), y));
    }
}

/// Factors of either sign, none, and ones that are no power of two.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let s = g.pick(&[0.0, 1.0, -0.37, 53.066]);
    let y = scale(&mut case.rec, x, s);
    case.expect(y);
    case
}
