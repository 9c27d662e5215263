//! Softmax of rows or of heads.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::Tensor;

kernel! {
    SOFTMAX: "softmax",
    entry: "softmax",
    wgsl: ["softmax.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::softmax,
    nmse: 1e-10,
}

/// y = exp(x) / sum(exp(x)) over the last axis.
#[derive(Clone, Debug)]
pub struct Softmax {
    pub x: Tensor,
    pub y: Tensor,
}

/// y = exp(x - max) / sum exp(x - max) over the last axis of `x` [T, D] or [T, N, H], f32; each row has a finite element.
pub fn softmax(rec: &mut Recorder, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Softmax { x, y });
    y
}

impl Operation for Softmax {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::softmax(x, dim, y));
    }
}

/// Rows at the workgroup's edges, flat, peaked and all equal; per head too.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, heads * dim).heads(heads);
    let y = softmax(&mut case.rec, x);
    case.expect(y);
    case
}
