//! Norm and rotation of the keys, norm of the values, and their way into the state, in one kernel. Made by the planner, never recorded.

use super::norm_rope::{self, WG};
use super::{Attend, Io, Op, Operation, attention, kv_append, rms_norm, rope};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::record::RopeTable;
use crate::tensor::{KvState, Lead, Shape, StateKind, Tensor, Weight};
use cpu_ref::{KvType, Mask};
use half::f16;

kernel! {
    NORM_ROPE_APPEND: "norm_rope_append",
    entry: "norm_rope_append",
    wgsl: [
        "norm_rope_append.wgsl", "shared/heads_quads.wgsl", "shared/head_turns.wgsl", "shared/head_most.wgsl", "shared/square_sums.wgsl",
        "shared/grid.wgsl", "shared/lanes.wgsl"
    ],
    params: Params {
        heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_k: u32, norm_v: u32, eps: f32
    },
    bindings: Bind { k: Read, v: Read, w: Read, table: Read, positions: Read, sequences: Read, k_state: KvMut, v_state: KvMut },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
}

/// Threads that share one of a row's `heads`: as few as have a quad each, where they fill whole workgroups.
pub(super) fn lanes(head_dim: u32, heads: u32) -> u32 {
    let lanes = norm_rope::lanes(head_dim);
    if (heads * lanes).is_multiple_of(WG) { lanes } else { WG }
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
    let workgroups = u64::from(shape.rows) * u64::from(2 * shape.heads * lanes(shape.dim, 2 * shape.heads) / WG);
    let fits = shape.dim.is_multiple_of(32) && table.shape.dim.is_multiple_of(8) && shape.dim <= attention::MAX_HEAD_DIM && workgroups <= u64::from(makers.caps.max_grid);
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

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Whether f32 rounds every one of these elements, which start a block of a state, as f64 does: none is within an error of f32
/// of the middle between two that the state can hold. An element that was rotated has the error of its whole pair, `apart` elements
/// from it.
fn settled(ty: KvType, row: &[f32], apart: usize) -> bool {
    const ERROR: f32 = 4e-7;
    let size = |i: usize| match i {
        i if i < apart => row[i].hypot(row[i + apart]),
        i if i < 2 * apart => row[i].hypot(row[i - apart]),
        i => row[i].abs(),
    };
    match ty {
        KvType::F32 => true,
        KvType::F16 => row.iter().enumerate().all(|(i, v)| f16::from_f32(v - size(i) * ERROR) == f16::from_f32(v + size(i) * ERROR)),
        KvType::Q8_0 => row.chunks(32).zip((0..).step_by(32)).all(|(block, start)| {
            let d = block.iter().fold(0.0_f32, |most, v| most.max(v.abs())) / 127.0;
            let far = |(i, v): (usize, &f32)| ((v / d).abs().fract() - 0.5).abs() > (127.0 + size(i) / d) * ERROR;
            d == 0.0 || (start..).zip(block).all(far)
        }),
    }
}

/// A head that is drawn until what `finish` makes of it is settled in a state of this type.
fn head(ty: KvType, apart: usize, draw: impl FnMut() -> Vec<f32>, finish: impl Fn(Vec<f32>) -> Vec<f32>) -> Vec<f32> {
    std::iter::repeat_with(draw).find(|head| settled(ty, &finish(head.clone()), apart)).expect("an endless supply")
}

const EPS: f32 = 1e-6;

fn normed(x: &[f32], w: Option<&[f32]>) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    cpu_ref::rms_norm(x, w, x.len(), f64::from(EPS), &mut y);
    y
}

/// A head as it is at a position.
fn rotated(x: &[f32], table: &RopeTable, position: u32) -> Vec<f32> {
    let (mut rows, mut y) = (vec![0.0; table.dim as usize], vec![0.0; x.len()]);
    let spec = cpu_ref::RopeSpec { dim: table.dim as usize, base: table.base, scale: 1.0, factors: None, magnitude: 1.0 };
    cpu_ref::rope_rows(&spec, &[position], &mut rows);
    cpu_ref::rope(x, &rows, 1, x.len(), &mut y);
    y
}

/// The parts as models record them, then what attention with a window of one finds in the state.
pub fn case(g: &mut Gen) -> Case {
    recorded(g, false)
}

/// The same, perhaps with queries that are rotated by the same table.
pub(super) fn recorded(g: &mut Gen, queries: bool) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, heads, dim) = (g.pick(&[1, 3, 26]), g.pick(&[1, 2, 5]), g.pick(&[32, 64, 96, 128, 256, 512]));
    let width = heads * dim;
    let kinds = [StateKind::kv(ty, width); 2];
    let mut case = Case::with_states(rows, &kinds, 2, 30);
    case.input.sequences = (0..rows).map(|t| t % 2).collect();
    let table = RopeTable::new(g.pick(&[dim, dim, dim / 2, 8]), 1e4);
    // Where scores count, weights are of ordinary size: large scores hang on the last bits of what they are made of.
    let alone = g.coin();
    let weight = |g: &mut Gen| if alone { g.values(dim as usize) } else { (0..dim).map(|_| 2.0 * g.unit()).collect() };
    let (w, norm_v) = (g.coin().then(|| weight(g)), g.coin());
    let finish_k = |t, k: Vec<f32>| rotated(&w.as_ref().map_or(k.clone(), |w| normed(&k, Some(w))), &table, t);
    let finish_v = |v: Vec<f32>| if norm_v { normed(&v, None) } else { v };
    // The norm of small keys is that of eps.
    let size = if w.is_some() { g.pick(&[3.0, 1e-3]) } else { 3.0 };
    let (mut k, mut v) = (vec![], vec![]);
    for n in 0..rows * heads {
        k.extend(head(ty, table.dim as usize / 2, || (0..dim).map(|_| size * g.unit()).collect(), |k| finish_k(n / heads, k)));
        v.extend(head(ty, 0, || g.values(dim as usize), finish_v));
    }
    let shape = Shape::new(Lead::Step, rows, width);
    let (k, v) = (case.given(shape, k).heads(heads), case.given(shape, v).heads(heads));
    let w = w.map(|w| case.given_vector(w));
    let k = w.map_or(k, |w| rms_norm(&mut case.rec, k, Some(w), EPS));
    let v = if norm_v { rms_norm(&mut case.rec, v, None, EPS) } else { v };
    let table = case.rec.rope_rows(&table);
    let k = rope(&mut case.rec, k, table);
    let q_heads = if queries { heads * g.pick(&[1, 3]) } else { heads };
    let q = case.uniform(g, q_heads * dim, 3.0).heads(q_heads);
    let q_weight = (queries && g.coin()).then(|| case.given_vector(weight(g)));
    let q = q_weight.map_or(q, |w| rms_norm(&mut case.rec, q, Some(w), 1e-6));
    let q = if queries { rope(&mut case.rec, q, table) } else { q };
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, kv, k, v);
    let mask = if alone { Mask::Window(1) } else { Mask::Causal };
    let y = attention(&mut case.rec, q, kv, heads, Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: None });
    case.expect(y);
    case
}
