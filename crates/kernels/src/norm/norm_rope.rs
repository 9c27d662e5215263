//! The norm of every head and its rotation, in one kernel. The planner makes it; it is never
//! recorded.

use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_ROPE: "norm_rope",
    wgsl: [
        "norm/norm_rope.wgsl", "norm/pieces/heads_quads.wgsl", "shared/head_turns.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl",
        "shared/lanes.wgsl"
    ],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32, lanes: u32, exchange: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, table: Read, y: Write },
    cpu: cpu_ref::rope,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4096 },
}

/// Threads of a workgroup.
pub(crate) const WG: u32 = 128;

/// Threads that share a head, one quad each, for heads that are a multiple of 4.
pub(crate) fn lanes(head_dim: u32) -> u32 {
    (head_dim / 4).next_power_of_two()
}

/// y = rope(x / sqrt(mean(x^2) + eps) * w), head by head.
#[derive(Clone, Debug)]
pub struct NormRope {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub table: Tensor,
    pub y: Tensor,
}

impl Operation for NormRope {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.table], writes: vec![self.y] }
    }
}

impl Lowering for NormRope {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let lanes = lanes(shape.dim);
        let params = Params {
            heads: shape.heads,
            head_dim: shape.dim,
            dim: self.table.shape.dim,
            rows: shape.rows,
            lanes,
            exchange: cx.caps.subgroup_size.min(WG),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let bind = Bind { x: self.x.into(), w: Arg::from(self.w), table: self.table.into(), y: self.y.into() };
        vec![
            bind.dispatch(params, Grid::Elements { lead: Shape { dim: lanes, ..shape }, workgroup: WG, per_thread: 1 }),
        ]
    }
}
