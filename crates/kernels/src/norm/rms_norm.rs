//! Root-mean-square normalisation of rows or of heads.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    RMS_NORM: "rms_norm",
    wgsl: ["norm/rms_norm.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, y: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis.
#[derive(Clone, Debug)]
pub struct RmsNorm {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub y: Tensor,
}

parameters! { RmsNorm: eps }
values! { RmsNorm: x, w, y }

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis of `x` [T, D] or [T, N, H]; `w` \[D\] (or
/// \[H\]) or none. f32.
pub fn rms_norm(rec: &mut Recorder<impl From<RmsNorm>>, x: Tensor, w: Option<Weight>, eps: f32) -> Tensor {
    assert!(w.is_none_or(|w| w.cols == x.shape.dim), "rms_norm of rows of {} with a weight of {:?}", x.shape.dim, w);
    let y = rec.make(x.shape);
    rec.push(RmsNorm { x, w, eps, y });
    y
}

impl Operation for RmsNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for RmsNorm {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params {
            dim: shape.dim,
            rows: shape.rows * shape.heads,
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), w: Arg::from(self.w), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for RmsNorm {
    fn reference(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |host, x, y| {
            let w = self.w.map(|w| host.vector(w));
            cpu_ref::rms_norm(x, w, dim, f64::from(self.eps), y);
        });
    }
}
