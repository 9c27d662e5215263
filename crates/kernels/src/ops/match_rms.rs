//! Rows in the size of other rows.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::Tensor;

kernel! {
    MATCH_RMS: "match_rms",
    entry: "match_rms",
    wgsl: ["match_rms.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, least: f32 },
    bindings: Bind { x: Read, like: Read, y: Write },
    cpu: cpu_ref::match_rms,
    nmse: 1e-10,
}

/// y = x * sqrt(mean(like^2) / max(mean(x^2), least)) over the last axis.
#[derive(Clone, Debug)]
pub struct MatchRms {
    pub x: Tensor,
    pub like: Tensor,
    pub least: f32,
    pub y: Tensor,
}

/// y = x * sqrt(mean(like^2) / max(mean(x^2), least)) over the last axis of `x` and `like` [T, D]: x in the size of the other.
/// f32.
pub fn match_rms(rec: &mut Recorder, x: Tensor, like: Tensor, least: f32) -> Tensor {
    assert_eq!(x.shape, like.shape, "match_rms of unequal shapes");
    let y = rec.make(x.shape);
    rec.push(MatchRms { x, like, least, y });
    y
}

impl Operation for MatchRms {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.like], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, least: self.least };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), like: self.like.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let dim = self.x.shape.dim as usize;
        cpu_ref::match_rms(host.f32(self.x), host.f32(self.like), dim, f64::from(self.least), &mut y);
        host.put(self.y, y);
    }
}

/// Rows at the workgroup's edges, of like and unlike sizes, above the least and below it; per head too.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, heads * dim).heads(heads);
    let like = case.tensor(g, heads * dim).heads(heads);
    let least = g.pick(&[1e-5, 1e-2, 10.0]);
    let y = match_rms(&mut case.rec, x, like, least);
    case.expect(y);
    case
}
