//! Norms and rotations of queries and keys, and the append of keys and values to the state, in one
//! kernel. The planner makes it; it is never recorded.

use super::norm_rope::WG;
use super::norm_rope_append::{NormRopeAppend, lanes};
use crate::graph::operation::{Io, Operation};
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    NORM_ROPE_HEADS: "norm_rope_heads",
    wgsl: [
        "norm/norm_rope_heads.wgsl", "norm/pieces/heads_quads.wgsl", "shared/head_turns.wgsl", "norm/pieces/head_most.wgsl",
        "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/lanes.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_q: u32, norm_k: u32, norm_v: u32,
        eps: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: Kv(Write), v_state: Kv(Write), y: Write
    },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4096 },
}

/// y = rope(norm(q)), with the append of keys and values; any norm may be missing.
#[derive(Clone, Debug)]
pub struct NormRopeHeads {
    pub append: NormRopeAppend,
    pub q: Tensor,
    /// The weight of the norm of the queries; `None` if they are not normed.
    pub norm_q: Option<Weight>,
    pub y: Tensor,
}

impl Operation for NormRopeHeads {
    fn io(&self) -> Io {
        let mut io = self.append.io();
        io.reads.push(self.q);
        io.writes.push(self.y);
        io
    }
}

impl Lowering for NormRopeHeads {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let append = &self.append;
        let shape = append.k.shape;
        let heads = self.q.shape.heads + 2 * shape.heads;
        let lanes = lanes(shape.dim, heads);
        let params = Params {
            q_heads: self.q.shape.heads,
            heads: shape.heads,
            head_dim: shape.dim,
            dim: append.table.shape.dim,
            rows: shape.rows,
            capacity: 0,
            lanes,
            exchange: cx.caps.subgroup_size.min(WG),
            norm_q: u32::from(self.norm_q.is_some()),
            norm_k: u32::from(append.norm_k.is_some()),
            norm_v: u32::from(append.norm_v),
            eps: append.eps,
        };
        let bind = Bind {
            q: self.q.into(),
            k: append.k.into(),
            v: append.v.into(),
            wq: Arg::from(self.norm_q),
            wk: Arg::from(append.norm_k),
            table: append.table.into(),
            positions: append.positions.into(),
            sequences: append.sequences.into(),
            k_state: append.state.k.into(),
            v_state: append.state.v.into(),
            y: self.y.into(),
        };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: heads * lanes / WG })]
    }
}
