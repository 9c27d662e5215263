//! A residual sum with the norm of one summand and the packing of the sum, in one kernel. The
//! planner makes it; it is never recorded.

use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_ADD: "norm_add",
    wgsl: ["norm/norm_add.wgsl", "norm/pieces/norm_add_end.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, h: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

kernel! {
    NORM_ADD_Q8: "norm_add_q8",
    entry: "norm_add",
    wgsl: [
        "norm/norm_add.wgsl", "norm/pieces/norm_add_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"
    ],
    params: PackedParams { dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32 },
    bindings: PackedBind { a: Read, b: Read, w: Read, s: Read, h: Write, u: Read, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

/// The packed copy of the sum, or of its norm.
#[derive(Copy, Clone, Debug)]
pub struct Packed {
    pub to: Tensor,
    /// The weight and eps of the norm that is packed; `None` packs the sum itself.
    pub norm: Option<(Option<Weight>, f32)>,
}

/// h = scale factor (a + b / sqrt(mean(b^2) + eps) w), with means over the heads of `b`; and h in 8
/// bits.
#[derive(Clone, Debug)]
pub struct NormAdd {
    pub a: Tensor,
    pub b: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub factor: Option<Weight>,
    pub scale: f32,
    pub h: Tensor,
    pub packed: Option<Packed>,
}

/// Params that describe a sum and its packing.
pub(crate) struct Flags {
    pub has_weight: u32,
    pub has_factor: u32,
    pub pack: u32,
    pub has_u: u32,
    pub u: Option<Weight>,
    pub next_eps: f32,
}

impl NormAdd {
    pub(crate) fn flags(&self) -> Flags {
        let norm = self.packed.and_then(|packed| packed.norm);
        let (u, next_eps) = norm.map_or((None, 0.0), |(u, eps)| (u, eps));
        Flags {
            has_weight: u32::from(self.w.is_some()),
            has_factor: u32::from(self.factor.is_some()),
            pack: u32::from(self.packed.is_some()) + u32::from(norm.is_some()),
            has_u: u32::from(u.is_some()),
            u,
            next_eps,
        }
    }
}

impl Operation for NormAdd {
    fn io(&self) -> Io {
        Io { reads: vec![self.a, self.b], writes: std::iter::once(self.h).chain(self.packed.map(|packed| packed.to)).collect() }
    }
}

impl Lowering for NormAdd {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Shape { dim, rows, heads, .. } = self.b.shape;
        let rows = rows * heads;
        let Flags { has_weight, has_factor, pack, has_u, u, next_eps } = self.flags();
        let [a, b, h] = [self.a, self.b, self.h].map(Arg::from);
        let (w, s, eps, scale) = (Arg::from(self.w), Arg::from(self.factor), self.eps, self.scale);
        let grid = Grid::PerRow { lead: self.h.shape, per_row: heads };
        vec![match self.packed {
            None => {
                let params = Params { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale };
                Bind { a, b, w, s, h }.dispatch(params, grid)
            }
            Some(Packed { to, .. }) => {
                let params = PackedParams { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale };
                PackedBind { a, b, w, s, h, u: u.into(), packed: to.into() }.dispatch(params, grid)
            }
        }]
    }
}
