//! Derivative of the root-mean-square normalisation by its rows.

use super::rms_norm::RmsNorm;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    RMS_NORM_BACKWARD: "rms_norm_backward",
    wgsl: ["norm/rms_norm_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, dy: Read, dx: Write },
    cpu: cpu_ref::rms_norm_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx = the derivative of a norm by its rows.
#[derive(Clone, Debug)]
pub struct RmsNormBackward {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { RmsNormBackward: eps }

/// The derivative of `norm` by its rows, from the derivative `dy` by its result; both have the
/// shape of the norm's rows. f32.
pub fn rms_norm_backward(rec: &mut Recorder<impl From<RmsNormBackward>>, norm: &RmsNorm, dy: Tensor) -> Tensor {
    let &RmsNorm { x, w, eps, .. } = norm;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "rms_norm_backward of unequal shapes"
    );
    let dx = rec.make(x.shape);
    rec.push(RmsNormBackward { x, w, eps, dy, dx });
    dx
}

impl Operation for RmsNormBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for RmsNormBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params {
            dim: shape.dim,
            rows: shape.rows * shape.heads,
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let bind = Bind { x: self.x.into(), w: Arg::from(self.w), dy: self.dy.into(), dx: self.dx.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads })]
    }
}

impl Reference for RmsNormBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        let w = self.w.map(|w| host.vector(w));
        let dim = self.x.shape.dim as usize;
        cpu_ref::rms_norm_backward(host.f32(self.x), w, host.f32(self.dy), dim, f64::from(self.eps), &mut dx);
        host.put(self.dx, dx);
    }
}
