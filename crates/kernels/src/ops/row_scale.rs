//! The powers of two that bring rows into the range of f16. Put there by the planner; recorded by parity cases.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    ROW_SCALE: "row_scale",
    entry: "row_scale",
    wgsl: ["row_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, scales: Write },
    cpu: cpu_ref::row_scale,
    nmse: 1e-10,
}

/// scales = the power of two of each row's largest magnitude.
#[derive(Clone, Debug)]
pub struct RowScale {
    pub x: Tensor,
    pub scales: Tensor,
}

/// One scale per row of `x` [T, D], as [`cpu_ref::row_scale`]; [T, 1] f32.
pub fn row_scale(rec: &mut Recorder, x: Tensor) -> Tensor {
    let scales = rec.make(Shape { heads: 1, dim: 1, ..x.shape });
    rec.push(RowScale { x, scales });
    scales
}

impl Operation for RowScale {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.scales] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.width(), rows: shape.rows };
        vec![Bind { x: self.x.into(), scales: self.scales.into() }.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut scales = host.take(self.scales);
        cpu_ref::row_scale(host.f32(self.x), self.x.shape.width() as usize, &mut scales);
        host.put(self.scales, scales);
    }
}

/// Magnitudes below it count as zeros.
const LEAST: f32 = 7.9e-31;

/// Rows of ordinary, tiny and huge values, of zeros, and of the least that have a scale and the most that have none.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = if g.coin() {
        case.squared(g, dim)
    } else {
        let size = g.pick(&[LEAST, LEAST.next_down()]);
        let values = (0..rows * dim).map(|n| if n % dim == 0 { size } else { size * g.unit() }).collect();
        case.given(Shape::new(Lead::Step, rows, dim), values)
    };
    let scales = row_scale(&mut case.rec, x);
    case.expect_as(scales, crate::compare::Compare::Exact);
    case
}
