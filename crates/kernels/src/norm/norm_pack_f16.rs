//! A norm whose readers want f16, with the residual sum before it. The planner makes it; it is
//! never recorded.

use super::pack_f16::pitches;
use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_PACK_F16: "norm_pack_f16",
    wgsl: ["norm/norm_pack_f16.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_add: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, scales: Write, halves: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 10240 },
}

/// h = a + b; scales, halves = h / sqrt(mean(h^2) + eps) * w in f16. Without a sum, h is `a`.
#[derive(Clone, Debug)]
pub struct NormPackF16 {
    pub a: Tensor,
    /// (b, h)
    pub sum: Option<(Tensor, Tensor)>,
    pub w: Option<Weight>,
    pub eps: f32,
    pub scales: Tensor,
    pub halves: Tensor,
    /// Rows of a slab, as in [`PackF16`](crate::norm::pack_f16::PackF16); 0 for whole rows.
    pub slab: u32,
}

impl Operation for NormPackF16 {
    fn io(&self) -> Io {
        let (b, h) = self.sum.unzip();
        let writes = h.into_iter().chain([self.scales, self.halves]);
        Io { reads: std::iter::once(self.a).chain(b).collect(), writes: writes.collect() }
    }
}

impl Lowering for NormPackF16 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.a.shape;
        let (row_pitch, slab_pitch) = pitches(shape.width(), self.slab);
        let params = Params {
            dim: shape.width(),
            rows: shape.rows,
            row_pitch,
            slab_pitch,
            has_add: u32::from(self.sum.is_some()),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let (b, h) = self.sum.map_or((Arg::None, Arg::Spare), |(b, h)| (b.into(), h.into()));
        let bind = Bind {
            a: self.a.into(),
            b,
            w: Arg::from(self.w),
            h,
            scales: self.scales.into(),
            halves: self.halves.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}
