//! Sparsity by a cut-off that mean and deviation of a row give.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    GAUSSIAN_TOP_K: "gaussian_top_k",
    entry: "gaussian_top_k",
    wgsl: ["gaussian_top_k.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, multiplier: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::gaussian_top_k,
    nmse: 1e-10,
}

/// y = max(x - (mean(x) + multiplier * deviation(x)), 0) over the last axis.
#[derive(Clone, Debug)]
pub struct GaussianTopK {
    pub x: Tensor,
    pub multiplier: f32,
    pub y: Tensor,
}

/// y = max(x - (mean(x) + multiplier * deviation(x)), 0) over the last axis of `x` [T, D], with the biased deviation. f32.
pub fn gaussian_top_k(rec: &mut Recorder, x: Tensor, multiplier: f32) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(GaussianTopK { x, multiplier, y });
    y
}

impl Operation for GaussianTopK {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, multiplier: self.multiplier };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::gaussian_top_k(x, dim, f64::from(self.multiplier), y));
    }
}

/// Rows at the workgroup's edges, each with an element far above its cut-off: differences of near numbers have no bound.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, offset) = (g.small(), g.dim(), g.pick(&[0.0, -3.0, 1.5]));
    let mut case = Case::new(rows);
    let mut values: Vec<f32> = (0..rows * dim).map(|_| offset + 2.0 * g.unit()).collect();
    values.iter_mut().step_by(dim as usize).for_each(|x| *x = offset + 9.0);
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let multiplier = g.pick(if dim < 31 { &[0.0, -0.5, 0.8] } else { &[0.0, -0.5, 0.84, 1.6448] });
    let y = gaussian_top_k(&mut case.rec, x, multiplier);
    case.expect(y);
    case
}
