//! Norm and rotation of the keys, norm of the values, and the append of both to the state, in one
//! kernel. The planner makes it; it is never recorded.

use super::norm_rope::{self, WG};
use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{KvState, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_ROPE_APPEND: "norm_rope_append",
    wgsl: [
        "norm/norm_rope_append.wgsl", "norm/pieces/heads_quads.wgsl", "shared/head_turns.wgsl", "norm/pieces/head_most.wgsl",
        "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/lanes.wgsl"
    ],
    params: Params {
        heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_k: u32, norm_v: u32, eps: f32
    },
    bindings: Bind { k: Read, v: Read, w: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Write), v_state: Kv(Write) },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4096 },
}

/// Threads that share one of a row's `heads`: as few as take one quad each, if they fill whole
/// workgroups.
pub(crate) fn lanes(head_dim: u32, heads: u32) -> u32 {
    let lanes = norm_rope::lanes(head_dim);
    if (heads * lanes).is_multiple_of(WG) { lanes } else { WG }
}

/// state = append(rope(norm(k)), norm(v)); either norm may be missing.
#[derive(Clone, Debug)]
pub struct NormRopeAppend {
    pub k: Tensor,
    pub v: Tensor,
    /// The weight of the norm of the keys; `None` if they are not normed.
    pub norm_k: Option<Weight>,
    /// Whether values are divided by their root mean square.
    pub norm_v: bool,
    pub eps: f32,
    pub table: Tensor,
    pub positions: Tensor,
    pub sequences: Tensor,
    pub state: KvState,
}

impl Operation for NormRopeAppend {
    fn io(&self) -> Io {
        Io { reads: vec![self.k, self.v, self.table, self.positions, self.sequences], writes: vec![] }
    }
}

impl Lowering for NormRopeAppend {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.k.shape;
        let lanes = lanes(shape.dim, 2 * shape.heads);
        let params = Params {
            heads: shape.heads,
            head_dim: shape.dim,
            dim: self.table.shape.dim,
            rows: shape.rows,
            capacity: 0,
            lanes,
            exchange: cx.caps.subgroup_size.min(WG),
            norm_k: u32::from(self.norm_k.is_some()),
            norm_v: u32::from(self.norm_v),
            eps: self.eps,
        };
        let bind = Bind {
            k: self.k.into(),
            v: self.v.into(),
            w: Arg::from(self.norm_k),
            table: self.table.into(),
            positions: self.positions.into(),
            sequences: self.sequences.into(),
            k_state: self.state.k.into(),
            v_state: self.state.v.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 2 * shape.heads * lanes / WG })]
    }
}
