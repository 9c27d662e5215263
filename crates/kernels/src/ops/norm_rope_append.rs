//! Norm and rotation of the keys, norm of the values, and their way into the state, in one kernel. Made by the planner, never recorded.

use super::{Attend, Io, Op, Operation, attention, kv_append, rms_norm, rope};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::record::RopeTable;
use crate::tensor::{KvState, StateKind, Tensor, Weight};
use cpu_ref::{KvType, Mask};

kernel! {
    NORM_ROPE_APPEND: "norm_rope_append",
    entry: "norm_rope_append",
    wgsl: ["norm_rope_append.wgsl", "shared/head.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, norm_k: u32, norm_v: u32, eps: f32 },
    bindings: Bind { k: Read, v: Read, w: Read, table: Read, positions: Read, sequences: Read, k_state: KvMut, v_state: KvMut },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
}

/// state = append(rope(norm(k)), norm(v)); either norm may be missing.
#[derive(Clone, Debug)]
pub struct NormRopeAppend {
    pub k: Tensor,
    pub v: Tensor,
    /// The weight of the norm of the keys; they have none without it.
    pub norm_k: Option<Weight>,
    /// Whether values are divided by their root mean square.
    pub norm_v: bool,
    pub eps: f32,
    pub table: Tensor,
    pub positions: Tensor,
    pub sequences: Tensor,
    pub state: KvState,
}

/// An append of keys that were rotated, and perhaps normed, for nobody else; of values as they are or normed without a weight.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::KvAppend(append) = op else { return None };
    let (k, norm_k, eps, table) = match makers.alone(append.k)? {
        Op::NormRope(rope) => (rope.x, Some(rope.w?), Some(rope.eps), rope.table),
        Op::Rope(rope) => (rope.x, None, None, rope.table),
        _ => return None,
    };
    let normed = match makers.alone(append.v) {
        Some(Op::RmsNorm(norm)) if norm.w.is_none() && norm.x.shape.heads == k.shape.heads => Some(norm),
        _ => None,
    };
    let shape = k.shape;
    // The kernel writes a state, so its grid must come out whole: one dimension.
    let workgroups = u64::from(shape.rows) * 2 * u64::from(shape.heads);
    let fits = shape.dim.is_multiple_of(32) && shape.dim <= attention::MAX_HEAD_DIM && workgroups <= u64::from(makers.caps.max_grid);
    let same_eps = normed.is_none_or(|norm| eps.is_none_or(|eps| eps == norm.eps));
    if !fits || !same_eps {
        return None;
    }
    let op = NormRopeAppend {
        k,
        v: normed.map_or(append.v, |norm| norm.x),
        norm_k,
        norm_v: normed.is_some(),
        eps: eps.or(normed.map(|norm| norm.eps)).unwrap_or(0.0),
        table,
        positions: append.positions,
        sequences: append.sequences,
        state: append.state,
    };
    let of = std::iter::once(append.k).chain(normed.map(|_| append.v)).collect();
    Some(Absorbed { op: op.into(), of, early: false })
}

impl Operation for NormRopeAppend {
    fn io(&self) -> Io {
        Io { reads: vec![self.k, self.v, self.table, self.positions, self.sequences], writes: vec![] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.k.shape;
        let params = Params {
            heads: shape.heads,
            head_dim: shape.dim,
            dim: self.table.shape.dim,
            rows: shape.rows,
            capacity: 0,
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
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 2 * shape.heads })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as models record them, then what attention with a window of one finds in the state.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, heads, dim) = (g.pick(&[1, 3, 26]), g.pick(&[1, 2, 5]), g.pick(&[32, 64, 96, 128, 256, 512]));
    let width = heads * dim;
    let kinds = [StateKind::kv(ty, width); 2];
    let mut case = Case::with_states(rows, &kinds, 2, 30);
    case.input.sequences = (0..rows).map(|t| t % 2).collect();
    let table = case.rec.rope_rows(&RopeTable::new(if g.coin() { dim } else { dim / 2 }, 1e4));
    let (k, v) = (case.uniform(g, width, 3.0).heads(heads), case.tensor(g, width).heads(heads));
    let w = g.coin().then(|| case.vector(g, dim));
    let k = w.map_or(k, |w| rms_norm(&mut case.rec, k, Some(w), 1e-6));
    let v = if g.coin() { rms_norm(&mut case.rec, v, None, 1e-6) } else { v };
    let k = rope(&mut case.rec, k, table);
    let q = case.uniform(g, width, 3.0).heads(heads);
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, kv, k, v);
    let mask = if g.coin() { Mask::Window(1) } else { Mask::Causal };
    let y = attention(&mut case.rec, q, kv, heads, Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: None });
    case.expect(y);
    case
}
