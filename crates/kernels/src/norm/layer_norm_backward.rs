//! Derivative of the layer normalisation by its rows.

use super::layer_norm::LayerNorm;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    LAYER_NORM_BACKWARD: "layer_norm_backward",
    wgsl: ["norm/layer_norm_backward.wgsl", "norm/pieces/layer_norm_row.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, dy: Read, dx: Write },
    cpu: cpu_ref::layer_norm_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// dx = the derivative of a norm by its rows.
#[derive(Clone, Debug)]
pub struct LayerNormBackward {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { LayerNormBackward: eps }

/// The derivative of `norm` by its rows, from the derivative `dy` by its result; both have the
/// shape of the norm's rows. f32.
pub fn layer_norm_backward(rec: &mut Recorder<impl From<LayerNormBackward>>, norm: &LayerNorm, dy: Tensor) -> Tensor {
    let &LayerNorm { x, w, eps, .. } = norm;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "layer_norm_backward of unequal shapes"
    );
    let dx = rec.make(x.shape);
    rec.push(LayerNormBackward { x, w, eps, dy, dx });
    dx
}

impl Operation for LayerNormBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.dy], writes: vec![self.dx] }
    }
}

impl Lowering for LayerNormBackward {
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

impl Reference for LayerNormBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        let w = self.w.map(|w| host.vector(w));
        let dim = self.x.shape.dim as usize;
        cpu_ref::layer_norm_backward(host.f32(self.x), w, host.f32(self.dy), dim, f64::from(self.eps), &mut dx);
        host.put(self.dx, dx);
    }
}
