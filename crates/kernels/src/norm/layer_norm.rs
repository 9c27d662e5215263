//! Layer normalisation of rows or of heads.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    LAYER_NORM: "layer_norm",
    wgsl: ["norm/layer_norm.wgsl", "norm/pieces/layer_norm_row.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, has_bias: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, b: Read, y: Write },
    cpu: cpu_ref::layer_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// y = (x - mean(x)) / sqrt(variance(x) + eps) * w + b over the last axis.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub b: Option<Weight>,
    pub eps: f32,
    pub y: Tensor,
}

parameters! { LayerNorm: eps }
values! { LayerNorm: x, w, b, y }

/// y = (x - mean(x)) / sqrt(variance(x) + eps) * w + b over the last axis of `x` [T, D] or
/// [T, N, H], with the variance over D, not D - 1; `w` and `b` \[D\] (or \[H\]) or none. f32 (Ba,
/// Kiros & Hinton 2016, arXiv 1607.06450).
pub fn layer_norm(
    rec: &mut Recorder<impl From<LayerNorm>>,
    x: Tensor,
    w: Option<Weight>,
    b: Option<Weight>,
    eps: f32,
) -> Tensor {
    for of in [w, b].into_iter().flatten() {
        assert_eq!(of.cols, x.shape.dim, "layer_norm of rows of {} with {of:?}", x.shape.dim);
    }
    let y = rec.make(x.shape);
    rec.push(LayerNorm { x, w, b, eps, y });
    y
}

impl Operation for LayerNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for LayerNorm {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params {
            dim: shape.dim,
            rows: shape.rows * shape.heads,
            has_weight: u32::from(self.w.is_some()),
            has_bias: u32::from(self.b.is_some()),
            eps: self.eps,
        };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        let (w, b) = (Arg::from(self.w), Arg::from(self.b));
        vec![Bind { x: self.x.into(), w, b, y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for LayerNorm {
    fn reference(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |host, x, y| {
            let [w, b] = [self.w, self.b].map(|of| of.map(|of| host.vector(of)));
            cpu_ref::layer_norm(x, w, b, dim, f64::from(self.eps), y);
        });
    }
}
