//! Norms and rotations of queries and keys and the way of keys and values into the state, in one kernel. Made by the planner, never recorded.

use super::norm_rope::{NormRope, WG};
use super::norm_rope_append::{NormRopeAppend, lanes, recorded};
use super::{Io, Op, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Tensor, Weight};

kernel! {
    NORM_ROPE_HEADS: "norm_rope_heads",
    entry: "norm_rope_heads",
    wgsl: [
        "norm_rope_heads.wgsl", "shared/heads_quads.wgsl", "shared/head_turns.wgsl", "shared/head_most.wgsl", "shared/square_sums.wgsl",
        "shared/grid.wgsl", "shared/lanes.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_q: u32, norm_k: u32, norm_v: u32,
        eps: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvMut, v_state: KvMut, y: Write
    },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
}

/// y = rope(norm(q)), with the append of keys and values beside it; any norm may be missing.
#[derive(Clone, Debug)]
pub struct NormRopeHeads {
    pub append: NormRopeAppend,
    pub q: Tensor,
    /// The weight of the norm of the queries; they have none without it.
    pub norm_q: Option<Weight>,
    pub y: Tensor,
}

/// An append beside the rotation of the queries by the same table, which moves to it.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::NormRopeAppend(append) = op else { return None };
    let table = append.table.id;
    let rotation = makers.latest(|op| match op {
        Op::NormRope(rope) => rope.table.id == table,
        Op::Rope(rope) => rope.table.id == table,
        _ => false,
    })?;
    let (q, norm_q, eps, y) = match rotation {
        Op::NormRope(NormRope { x, w, eps, y, .. }) => (*x, Some((*w)?), *eps, *y),
        Op::Rope(rope) => (rope.x, None, append.eps, rope.y),
        _ => return None,
    };
    let (shape, of) = (q.shape, append.k.shape);
    let normed = append.norm_k.is_some() || append.norm_v;
    let heads = shape.heads + 2 * of.heads;
    let workgroups = u64::from(shape.rows) * u64::from(heads * lanes(of.dim, heads) / WG);
    let fits = shape.dim == of.dim && shape.rows == of.rows && workgroups <= u64::from(makers.caps.max_grid);
    if !fits || (normed && eps != append.eps) || !NORM_ROPE_HEADS.fits(makers.caps) || makers.read_since(y) {
        return None;
    }
    let append = NormRopeAppend { eps, ..append.clone() };
    Some(Absorbed { op: NormRopeHeads { append, q, norm_q, y }.into(), of: vec![y], early: false })
}

impl Operation for NormRopeHeads {
    fn io(&self) -> Io {
        let mut io = self.append.io();
        io.reads.push(self.q);
        io.writes.push(self.y);
        io
    }

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

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as models record them, with rotated queries, normed or not.
pub fn case(g: &mut Gen) -> Case {
    recorded(g, true)
}
