//! Derivative of the root-mean-square normalisation by its weight.

use super::column_sum;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, Shape, State, StateKind, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::rms_norm::RmsNorm;

kernel! {
    RMS_NORM_WEIGHT_BACKWARD: "rms_norm_weight_backward",
    wgsl: ["training/rms_norm_weight_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, eps: f32 },
    bindings: Bind { x: Read, scales: Write },
    cpu: cpu_ref::rms_norm_weight_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// g += the sum of dy x / rms(x) over all rows.
#[derive(Clone, Debug)]
pub struct RmsNormWeightBackward {
    pub x: Tensor,
    pub eps: f32,
    pub dy: Tensor,
    pub step_rows: Tensor,
    /// The factors of the rows, between the two kernels.
    pub scales: Tensor,
    pub g: State,
}

parameters! { RmsNormWeightBackward: eps }

/// g\[d\] += sum_r dy[r, d] x[r, d] / sqrt(mean_e x[r, e]^2 + eps) over the rows of the step, or
/// over their heads: the derivative of `norm` by its weight, from the derivative `dy` by its
/// result; `g` holds \[D\] as plain words of f32.
pub fn rms_norm_weight_backward(
    rec: &mut Recorder<impl From<RmsNormWeightBackward>>,
    norm: &RmsNorm,
    dy: Tensor,
    g: State,
) {
    let &RmsNorm { x, eps, .. } = norm;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (x.shape.rows, x.shape.width()),
        "rms_norm_weight_backward of unequal shapes"
    );
    assert_eq!(rec.kind(g), StateKind::Words(x.shape.dim), "rms_norm_weight_backward: rows of {}", x.shape.dim);
    let step_rows = rec.input(Input::Rows);
    let scales = rec.make(Shape { heads: 1, dim: x.shape.heads, ..x.shape });
    rec.push(RmsNormWeightBackward { x, eps, dy, step_rows, scales, g });
}

impl Operation for RmsNormWeightBackward {
    // The scales are no result.
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.dy, self.step_rows], writes: vec![] }
    }
}

impl Lowering for RmsNormWeightBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows * shape.heads, eps: self.eps };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        let scales = Bind { x: self.x.into(), scales: self.scales.into() }.dispatch(params, grid);
        vec![scales, column_sum::dispatch(self.dy, Some(self.x), Some(self.scales), self.step_rows, shape.dim, self.g)]
    }
}

impl Reference for RmsNormWeightBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut g = host.state_f32(self.g);
        cpu_ref::rms_norm_weight_backward(
            host.f32(self.x),
            host.f32(self.dy),
            self.x.shape.dim as usize,
            f64::from(self.eps),
            &mut g,
        );
        host.put_state(self.g, &g);
    }
}
