//! Rows scaled to the root mean square of other rows.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MATCH_RMS: "match_rms",
    wgsl: ["norm/match_rms.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, least: f32 },
    bindings: Bind { x: Read, like: Read, y: Write },
    cpu: cpu_ref::match_rms,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = x * sqrt(mean(like^2) / max(mean(x^2), least)) over the last axis.
#[derive(Clone, Debug)]
pub struct MatchRms {
    pub x: Tensor,
    pub like: Tensor,
    pub least: f32,
    pub y: Tensor,
}

parameters! { MatchRms: least }
values! { MatchRms: x, like, y }

/// y = x * sqrt(mean(like^2) / max(mean(x^2), least)) over the last axis of `x` and `like` [T, D]:
/// `x` gets the root mean square of `like`. f32.
pub fn match_rms(rec: &mut Recorder<impl From<MatchRms>>, x: Tensor, like: Tensor, least: f32) -> Tensor {
    assert_eq!(x.shape, like.shape, "match_rms of unequal shapes");
    let y = rec.make(x.shape);
    rec.push(MatchRms { x, like, least, y });
    y
}

impl Operation for MatchRms {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.like], writes: vec![self.y] }
    }
}

impl Lowering for MatchRms {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, least: self.least };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), like: self.like.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for MatchRms {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let dim = self.x.shape.dim as usize;
        cpu_ref::match_rms(host.f32(self.x), host.f32(self.like), dim, f64::from(self.least), &mut y);
        host.put(self.y, y);
    }
}
