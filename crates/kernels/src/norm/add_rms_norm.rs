//! The residual sum and the norm after it, in one kernel. The planner makes it; it is never
//! recorded.

use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    ADD_RMS_NORM: "add_rms_norm",
    wgsl: ["norm/add_rms_norm.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, x: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// h = a + b; x = h / sqrt(mean(h^2) + eps) * w. Both are written, so h may have other readers and
/// taps.
#[derive(Clone, Debug)]
pub struct AddRmsNorm {
    pub a: Tensor,
    pub b: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub h: Tensor,
    pub x: Tensor,
}

impl Operation for AddRmsNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.a, self.b], writes: vec![self.h, self.x] }
    }
}

impl Lowering for AddRmsNorm {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params =
            Params { dim: shape.dim, rows: shape.rows, has_weight: u32::from(self.w.is_some()), eps: self.eps };
        let bind =
            Bind { a: self.a.into(), b: self.b.into(), w: Arg::from(self.w), h: self.h.into(), x: self.x.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}
