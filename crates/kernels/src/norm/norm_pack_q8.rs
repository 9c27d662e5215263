//! A norm whose readers want 8 bits, with the residual sum before it. The planner makes it; it is
//! never recorded.

use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_PACK_Q8: "norm_pack_q8",
    wgsl: [
        "norm/norm_pack_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params { dim: u32, rows: u32, has_add: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 768 },
}

const WG: u32 = 64;

/// h = a + b; packed = h w in 8 bits. Its readers divide by sqrt(mean(h^2) + eps). Without a sum, h
/// is `a`.
#[derive(Clone, Debug)]
pub struct NormPackQ8 {
    pub a: Tensor,
    /// (b, h)
    pub sum: Option<(Tensor, Tensor)>,
    pub w: Option<Weight>,
    pub eps: f32,
    pub packed: Tensor,
}

impl Operation for NormPackQ8 {
    fn io(&self) -> Io {
        let (b, h) = self.sum.unzip();
        Io { reads: std::iter::once(self.a).chain(b).collect(), writes: h.into_iter().chain([self.packed]).collect() }
    }
}

impl Lowering for NormPackQ8 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.a.shape;
        let params = Params {
            dim: shape.width(),
            rows: shape.rows,
            has_add: u32::from(self.sum.is_some()),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let (b, h) = self.sum.map_or((Arg::None, Arg::Spare), |(b, h)| (b.into(), h.into()));
        let bind = Bind { a: self.a.into(), b, w: Arg::from(self.w), h, packed: self.packed.into() };
        vec![bind.dispatch(params, Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 })]
    }
}
