//! Rows in f16 whose parts have scales of their own, brought to one scale each. Put there by the planner; recorded by parity cases.

use super::pack_f16::pack_f16;
use super::{Io, Operation};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    LEVEL_F16: "level_f16",
    entry: "level_f16",
    wgsl: ["level_f16.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, each: u32 },
    bindings: Bind { tops: Read, scales: Write, halves: Write },
    cpu: cpu_ref::level_f16,
    nmse: 1e-6,
}

/// scales = the largest of each row's tops; halves = themselves, by what their part's top is of that. In place: whoever made the halves has no
/// other readers.
#[derive(Clone, Debug)]
pub struct LevelF16 {
    pub tops: Tensor,
    pub scales: Tensor,
    pub halves: Tensor,
}

/// Levels `halves` [T, D / 2] (words) in place, of which every D / B elements were divided by one of `tops` [T, B]; returns the scales [T, 1], as
/// [`cpu_ref::level_f16`] does it. D / B is a multiple of 4.
pub fn level_f16(rec: &mut Recorder, tops: Tensor, halves: Tensor) -> Tensor {
    let (dim, parts) = (2 * halves.shape.width(), tops.shape.width());
    assert!(dim.is_multiple_of(4 * parts), "level_f16 of rows of {dim} in {parts} parts");
    let scales = rec.make(Shape { heads: 1, dim: 1, ..halves.shape });
    rec.push(LevelF16 { tops, scales, halves });
    scales
}

impl Operation for LevelF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.tops, self.halves], writes: vec![self.scales, self.halves] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.halves.shape;
        let dim = 2 * shape.width();
        let params = Params { dim, rows: shape.rows, each: dim / self.tops.shape.width() };
        let bind = Bind { tops: self.tops.into(), scales: self.scales.into(), halves: self.halves.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let (mut scales, mut words) = (host.take(self.scales), host.u32(self.halves).to_vec());
        let (k, parts) = (2 * self.halves.shape.width() as usize, self.tops.shape.width() as usize);
        cpu_ref::level_f16(host.f32(self.tops), k, k / parts, &mut scales, &mut words);
        host.put(self.scales, scales);
        host.put_u32(self.halves, words);
    }
}

/// Parts whose tops are equal, apart by less and by more than f16 reaches, and zeros; rows of zeros; more parts than threads.
pub fn case(g: &mut Gen) -> Case {
    let (rows, parts, each) = (g.small(), g.pick(&[1, 2, 5, 255, 257]), g.pick(&[4, 12, 32]));
    let mut case = Case::new(rows);
    let x = case.tensor(g, parts * each);
    let (_, halves) = pack_f16(&mut case.rec, x);
    let zeros = g.coin();
    let sizes: &[f32] = if zeros { &[0.0] } else { &[1.0, 256.0, 65_536.0, 1.0 / 65_536.0, 0.0] };
    let tops = (0..rows * parts).map(|_| g.pick(sizes)).collect();
    let tops = case.given(Shape::new(Lead::Step, rows, parts), tops);
    let scales = level_f16(&mut case.rec, tops, halves);
    case.expect_as(scales, Compare::Exact);
    case.expect_as(halves, Compare::Halves);
    case
}
