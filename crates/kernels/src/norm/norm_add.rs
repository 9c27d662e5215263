//! A residual sum with the norm of one summand and the packing of the sum, in one kernel. The
//! summand may be a sum of two norms. The planner makes it; it is never recorded.

use super::norm_add_f16;
use super::rms_norm::RmsNorm;
use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_ADD: "norm_add",
    wgsl: [
        "norm/norm_add.wgsl", "norm/pieces/norm_add_one.wgsl", "norm/pieces/norm_add_end.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl",
        "shared/reduce.wgsl"
    ],
    params: Params {
        dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32, c_eps: f32,
        d_eps: f32
    },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, h: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

kernel! {
    NORM_ADD_Q8: "norm_add_q8",
    entry: "norm_add",
    wgsl: [
        "norm/norm_add.wgsl", "norm/pieces/norm_add_one.wgsl", "norm/pieces/norm_add_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"
    ],
    params: PackedParams {
        dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32, c_eps: f32,
        d_eps: f32
    },
    bindings: PackedBind { a: Read, b: Read, w: Read, s: Read, h: Write, u: Read, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

kernel! {
    NORM_ADD_PAIR: "norm_add_pair",
    entry: "norm_add",
    wgsl: [
        "norm/norm_add.wgsl", "norm/pieces/norm_add_pair.wgsl", "norm/pieces/norm_add_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/q8_store.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"
    ],
    params: PairParams {
        dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32, c_eps: f32,
        d_eps: f32
    },
    bindings: PairBind {
        a: Read, c: Read, w: Read, s: Read, h: Write, u: Read, packed: Write, d: Read, c_weight: Read, d_weight: Read
    },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

/// Where the packed copy of a sum is.
#[derive(Copy, Clone, Debug)]
pub enum To {
    Q8(Tensor),
    /// As [`PackF16`](crate::norm::pack_f16::PackF16) packs it, with scales.
    F16 {
        scales: Tensor,
        halves: Tensor,
        slab: u32,
    },
}

impl To {
    fn tensors(self) -> Vec<Tensor> {
        match self {
            Self::Q8(packed) => vec![packed],
            Self::F16 { scales, halves, .. } => vec![scales, halves],
        }
    }

    /// The packed copy if it is in 8 bits.
    pub(crate) fn q8(self) -> Option<Tensor> {
        if let Self::Q8(packed) = self { Some(packed) } else { None }
    }
}

/// The packed copy of the sum, or of its norm.
#[derive(Copy, Clone, Debug)]
pub struct Packed {
    pub to: To,
    /// The weight and eps of the norm that is packed; `None` packs the sum itself.
    pub norm: Option<(Option<Weight>, f32)>,
}

/// h = scale factor (a + b / sqrt(mean(b^2) + eps) w), with means over the heads of `b`; and h
/// packed. With `pair`, `b` is the sum of these norms and is not made; then h is not in f16.
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
    /// Norms of whole rows, with weights.
    pub pair: Option<[RmsNorm; 2]>,
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
    /// h = a + norm(x), of whole rows or of heads.
    pub(crate) fn new(a: Tensor, norm: &RmsNorm, h: Tensor) -> Self {
        NormAdd { a, b: norm.x, w: norm.w, eps: norm.eps, factor: None, scale: 1.0, h, packed: None, pair: None }
    }

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
        let summands = self.pair.as_ref().map_or_else(|| vec![self.b], |pair| pair.iter().map(|norm| norm.x).collect());
        Io {
            reads: [vec![self.a], summands].concat(),
            writes: std::iter::once(self.h)
                .chain(self.packed.into_iter().flat_map(|packed| packed.to.tensors()))
                .collect(),
        }
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
        if let Some([c, d]) = &self.pair {
            let (c_eps, d_eps) = (c.eps, d.eps);
            let params =
                PairParams { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale, c_eps, d_eps };
            let packed = self.packed.and_then(|packed| packed.to.q8()).map_or(Arg::Spare, Arg::from);
            let (c_weight, d_weight) = (Arg::from(c.w), Arg::from(d.w));
            let bind = PairBind { a, c: c.x.into(), w, s, h, u: u.into(), packed, d: d.x.into(), c_weight, d_weight };
            return vec![bind.dispatch(params, grid)];
        }
        let (c_eps, d_eps) = (0.0, 0.0);
        vec![match self.packed {
            None => {
                let params =
                    Params { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale, c_eps, d_eps };
                Bind { a, b, w, s, h }.dispatch(params, grid)
            }
            Some(Packed { to: To::F16 { scales, halves, slab }, .. }) => {
                norm_add_f16::dispatch(self, [scales, halves], slab, grid)
            }
            Some(Packed { to: To::Q8(to), .. }) => {
                let params =
                    PackedParams { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale, c_eps, d_eps };
                PackedBind { a, b, w, s, h, u: u.into(), packed: to.into() }.dispatch(params, grid)
            }
        }]
    }
}
