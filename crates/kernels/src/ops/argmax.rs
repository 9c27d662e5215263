//! Index of the largest element of each row.

use super::{Io, Operation};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    ARGMAX: "argmax",
    entry: "argmax",
    wgsl: ["argmax.wgsl", "shared/grid.wgsl", "shared/order.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::argmax,
    nmse: 1e-12,
}

/// y = the first index of the largest element.
#[derive(Clone, Debug)]
pub struct Argmax {
    pub x: Tensor,
    pub y: Tensor,
}

/// The first index of the largest element of every row of `x` [R, V] f32; NaN never wins, all NaN give 0. Returns [R, 1], u32.
pub fn argmax(rec: &mut Recorder, x: Tensor) -> Tensor {
    let x = x.flat();
    let y = rec.make(Shape { dim: 1, ..x.shape });
    rec.push(Argmax { x, y });
    y
}

impl Operation for Argmax {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.x.shape.dim, rows: self.x.shape.rows };
        let grid = Grid::PerRow { lead: self.x.shape, per_row: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let rows = host.f32(self.x).chunks_exact(self.x.shape.dim as usize);
        let y = rows.map(cpu_ref::argmax).collect();
        host.put_u32(self.y, y);
    }
}

/// Values whose order is hard: few distinct ones, both zeros, infinities, subnormals, NaN of either sign, nothing but NaN.
pub(super) fn hard_order(g: &mut Gen, n: usize) -> Vec<f32> {
    const EDGES: [f32; 9] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1e-40, 3.5];
    let (kind, levels) = (g.pick(&[0, 1, 1, 2, 3, 4, 5]), g.pick(&[1.0, 2.0, 4.0]));
    let nan = |g: &mut Gen| f32::from_bits(0x7f80_0001 | (g.bits() as u32));
    let value = |g: &mut Gen| match kind {
        0 => 50.0 * g.unit(),
        1 => (levels * g.unit()).floor(),
        2 => g.pick(&EDGES),
        3 if g.bits().is_multiple_of(3) => nan(g),
        3 => -(g.unit().abs() + 1.0),
        4 => g.pick(&[-0.0, 0.0, -1.0]),
        _ => nan(g),
    };
    (0..n).map(|_| value(g)).collect()
}

/// Rows at the workgroup's edges with ties, both zeros, infinities and NaN.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.pick(&[1, 2, 255, 256, 257, 1021, 5003]));
    let mut case = Case::new(rows);
    let values = hard_order(g, (rows * dim) as usize);
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let y = argmax(&mut case.rec, x);
    case.expect_as(y, Compare::Exact);
    case
}
