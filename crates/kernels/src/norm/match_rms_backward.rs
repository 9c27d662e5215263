//! Derivatives of rows scaled to the root mean square of other rows.

use super::match_rms::MatchRms;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MATCH_RMS_BACKWARD: "match_rms_backward",
    wgsl: ["norm/match_rms_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, least: f32 },
    bindings: Bind { x: Read, like: Read, dy: Read, dx: Write, dlike: Write },
    cpu: cpu_ref::match_rms_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx, dlike = the derivatives of x sqrt(mean(like^2) / max(mean(x^2), least)).
#[derive(Clone, Debug)]
pub struct MatchRmsBackward {
    pub x: Tensor,
    pub like: Tensor,
    pub least: f32,
    pub dy: Tensor,
    pub dx: Tensor,
    pub dlike: Tensor,
}

parameters! { MatchRmsBackward: least }

/// The derivatives of `scaled` by its rows and by the rows whose size they get, from the derivative
/// `dy` by its result; all [T, D], f32. A row of zeros that gives the size has the derivative zero.
pub fn match_rms_backward(
    rec: &mut Recorder<impl From<MatchRmsBackward>>,
    scaled: &MatchRms,
    dy: Tensor,
) -> [Tensor; 2] {
    let &MatchRms { x, like, least, .. } = scaled;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "match_rms_backward of unequal shapes"
    );
    let [dx, dlike] = [rec.make(x.shape), rec.make(x.shape)];
    rec.push(MatchRmsBackward { x, like, least, dy, dx, dlike });
    [dx, dlike]
}

impl Operation for MatchRmsBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.like, self.dy], writes: vec![self.dx, self.dlike] }
    }
}

impl Lowering for MatchRmsBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, least: self.least };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        let [x, like, dy, dx, dlike] = [self.x, self.like, self.dy, self.dx, self.dlike].map(Into::into);
        vec![Bind { x, like, dy, dx, dlike }.dispatch(params, grid)]
    }
}

impl Reference for MatchRmsBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let (mut dx, mut dlike) = (host.take(self.dx), host.take(self.dlike));
        let (dim, least) = (self.x.shape.dim as usize, f64::from(self.least));
        let [x, like, dy] = [self.x, self.like, self.dy].map(|t| host.f32(t));
        cpu_ref::match_rms_backward(x, like, dy, dim, least, &mut dx, &mut dlike);
        host.put(self.dx, dx);
        host.put(self.dlike, dlike);
    }
}
