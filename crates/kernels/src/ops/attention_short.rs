//! Attention of one row over few keys with the norms, rotations and the append before it and the packing after it: one kernel where long contexts
//! take three. Made by the planner, never recorded.

use super::attention_deep_raw;
use super::attention_merge::AttentionMerge;
use super::attention_split::AttentionSplit;
use super::norm_rope::NormRope;
use super::norm_rope_append::NormRopeAppend;
use super::norm_rope_heads::NormRopeHeads;
use super::{Attend, Io, Op, Operation, Work, attention, attention_short_128, attention_short_batch, attention_short_whole, kv_append, pack_q8, rms_norm, rope};
use crate::compare::Compare;
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers, When, fixed};
use crate::record::RopeTable;
use crate::row::Row;
use crate::tensor::{Counts, KvState, StateKind, Tensor, Weight};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_SHORT: "attention_short",
    entry: "attention_short",
    wgsl: [
        "attention_short.wgsl", "shared/threads_256.wgsl", "shared/slice_8.wgsl", "shared/head_turns.wgsl", "shared/square_sums.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, append: u32, norm_q: u32, norm_k: u32, norm_v: u32,
        exchange: u32, eps: f32, scale: f32, softcap: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

kernel! {
    ATTENTION_SHORT_512: "attention_short_512" = ATTENTION_SHORT with
    wgsl: [
        "attention_short.wgsl", "shared/threads_512.wgsl", "shared/slice_8.wgsl", "shared/head_turns.wgsl", "shared/square_sums.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ]
}

/// Keys that a case has at most, and a table says.
const KEYS: u32 = 2048;
/// Threads of a workgroup, and of one for heads longer than that.
const WG: u32 = 256;
const WIDE_WG: u32 = 512;
/// Elements of a head per thread.
const PER_LANE: u32 = 8;
const MAX_HEAD_DIM: u32 = 512;

/// What finishes the queries before the attention.
#[derive(Clone, Debug)]
pub enum Heads {
    /// Keys and values, too, which are appended.
    All(NormRopeHeads),
    /// The queries alone: the states hold this row's key and value already.
    Queries(NormRope),
}

/// The operands of what finishes the queries, and of what does so with the row's key and value, if that is here; which of them are normed.
pub(super) struct Finished {
    pub q: Arg,
    pub k: Arg,
    pub v: Arg,
    pub wq: Arg,
    pub wk: Arg,
    pub table: Tensor,
    pub eps: f32,
    pub append: u32,
    pub norm_q: u32,
    pub norm_k: u32,
    pub norm_v: u32,
}

impl Finished {
    fn new(q: Tensor, norm_q: Option<Weight>, table: Tensor, eps: f32, append: Option<&NormRopeAppend>) -> Self {
        let norm_k = append.and_then(|append| append.norm_k);
        Self {
            q: q.into(),
            k: append.map_or(Arg::None, |append| append.k.into()),
            v: append.map_or(Arg::None, |append| append.v.into()),
            wq: norm_q.into(),
            wk: norm_k.into(),
            table,
            eps,
            append: u32::from(append.is_some()),
            norm_q: u32::from(norm_q.is_some()),
            norm_k: u32::from(norm_k.is_some()),
            norm_v: u32::from(append.is_some_and(|append| append.norm_v)),
        }
    }

    /// The norms as bits, the query's lowest.
    pub fn norms(&self) -> u32 {
        self.norm_q | self.norm_k << 1 | self.norm_v << 2
    }
}

/// packed = 8 bits of the attention of one row.
#[derive(Clone, Debug)]
pub struct AttentionShort {
    pub heads: Box<Heads>,
    pub split: Box<AttentionSplit>,
    pub merge: AttentionMerge,
}

/// The row for heads of `dim`.
fn row(dim: u32) -> &'static Row {
    if dim > WG { &ATTENTION_SHORT_512 } else { &ATTENTION_SHORT }
}

fn threads(dim: u32) -> u32 {
    if dim > WG { WIDE_WG } else { WG }
}

/// [`AttentionShort::keys`] of one row.
fn keys_of(dim: u32, keys: u32) -> u32 {
    keys.min(keys * 128 / dim * (threads(dim) / WG))
}

/// [`AttentionShort::keys`] of several.
pub(super) fn keys_of_rows(rows: u32, keys: u32) -> u32 {
    keys.saturating_mul(rows + 1).div_ceil(2).min(KEYS)
}

/// Positions up to which attention of one row with heads of `dim` that rotate as a whole, without a softcap, is one kernel on this device, where it is
/// so up to `keys` of heads of 128.
pub(crate) fn keys_of_whole(dim: u32, caps: &Caps, keys: u32) -> u32 {
    attention_short_whole::keys(dim, caps, keys).unwrap_or_else(|| keys_of(dim, keys))
}

/// A packed join of one row, with the split and the rotations before it.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::AttentionMerge(merge) = op else { return None };
    let Op::AttentionSplit(split) = makers.alone(merge.partial)? else { return None };
    let q = split.of.q;
    let (heads, raw) = match makers.alone(q)? {
        Op::NormRopeHeads(heads) if heads.append.state.k == split.of.kv.k => (Heads::All(heads.clone()), heads.q),
        Op::NormRope(rope) if rope.w.is_some() => (Heads::Queries(rope.clone()), rope.x),
        _ => return None,
    };
    let dim = q.shape.dim;
    let shaped = raw.shape == q.shape && dim <= MAX_HEAD_DIM && dim.is_power_of_two() && dim >= 4 * PER_LANE;
    let causal = split.of.attend.mask != Mask::Bidirectional;
    let op = AttentionShort { heads: heads.into(), split: split.clone().into(), merge: merge.clone() };
    let served = if q.shape.rows == 1 { row(dim).fits(makers.caps) } else { attention_short_batch::served(&op, makers.caps).is_some() };
    if !merge.packed || !shaped || !causal || !served {
        return None;
    }
    Some(Absorbed { op: op.into(), of: vec![merge.partial, q], early: false })
}

impl AttentionShort {
    fn before(&self) -> &dyn Operation {
        match &*self.heads {
            Heads::All(heads) => heads,
            Heads::Queries(rope) => rope,
        }
    }

    fn threads(&self) -> u32 {
        threads(self.split.of.q.shape.dim)
    }

    /// Positions up to which one workgroup per head is faster, where it is so up to `keys` of heads of 128: of longer heads it is for fewer, by the
    /// elements of a thread; of several rows, which fill a device sooner, for more. Qwen3-8B on an NVIDIA H200, a layer of 8 rows as one kernel and as
    /// three: 17.5 and 27.0 us at 512 keys, 25.9 and 33.8 at 1024, 39.8 and 43.4 at 1900; what comes before and after costs 2 rows as much as 8.
    fn keys(&self, keys: u32) -> u32 {
        let rows = self.split.of.q.shape.rows;
        if rows > 1 {
            return keys_of_rows(rows, keys);
        }
        keys_of(self.split.of.q.shape.dim, keys)
    }

    pub(super) fn finished(&self) -> Finished {
        match &*self.heads {
            Heads::All(NormRopeHeads { append, q, norm_q, .. }) => Finished::new(*q, *norm_q, append.table, append.eps, Some(append)),
            Heads::Queries(NormRope { x, w, eps, table, .. }) => Finished::new(*x, *w, *table, *eps, None),
        }
    }

    pub(super) fn window(&self) -> u32 {
        if let Mask::Window(n) = self.split.of.attend.mask { n as u32 } else { 0 }
    }

    fn short(&self, cx: &Lower<'_>) -> Dispatch {
        let attention = &self.split.of;
        let (q, kv) = (attention.q, attention.kv);
        let Finished { q: raw, k, v, wq, wk, table, eps, append, norm_q, norm_k, norm_v } = self.finished();
        let params = Params {
            q_heads: q.shape.heads,
            heads: attention.kv_heads,
            head_dim: q.shape.dim,
            dim: table.shape.dim,
            capacity: 0,
            window: self.window(),
            append,
            norm_q,
            norm_k,
            norm_v,
            exchange: cx.caps.subgroup_size.min(self.threads()),
            eps,
            scale: attention.attend.scale,
            softcap: attention.attend.softcap.unwrap_or(0.0),
        };
        let bind = Bind {
            q: raw,
            k,
            v,
            wq,
            wk,
            table: table.into(),
            positions: attention.positions.into(),
            sequences: attention.sequences.into(),
            k_state: kv.k.into(),
            v_state: kv.v.into(),
            packed: self.merge.y.into(),
        };
        let dispatch = bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: q.shape.heads });
        Dispatch { row: row(q.shape.dim), ..dispatch }
    }
}

impl Operation for AttentionShort {
    fn io(&self) -> Io {
        let mut io = self.before().io();
        io.reads.extend([self.split.of.positions, self.split.of.sequences]);
        Io { writes: vec![self.merge.y], ..io }
    }

    fn work(&self, counts: Counts) -> Work {
        self.before().work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let keys = cx.caps.table.short_keys;
        let whole = attention_short_whole::served(self, cx.caps);
        let (short, keys) = match (attention_short_batch::lower(self, cx), attention_short_128::served(self, cx.caps), whole) {
            (Some(batch), ..) => (batch, self.keys(keys)),
            (None, Some(heads), _) => (attention_short_128::lower(self, heads, cx), self.keys(keys)),
            (None, None, Some(row)) => (attention_short_whole::lower(self, row, cx), keys_of_whole(self.split.of.q.shape.dim, cx.caps, keys)),
            (None, None, None) => (self.short(cx), self.keys(keys)),
        };
        if (1..=keys).contains(&self.window()) {
            return vec![short];
        }
        let parts = match attention_deep_raw::lower(self, cx) {
            Some(dispatch) => vec![dispatch],
            None => [self.before().lower(cx), self.split.lower(cx)].concat(),
        };
        let long = parts.into_iter().chain(self.merge.lower(cx)).map(|dispatch| Dispatch { when: When::Far(keys), ..dispatch });
        std::iter::once(Dispatch { when: When::Near(keys), ..short }).filter(|_| keys > 0).chain(long).collect()
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// A row behind others that the states hold, as models record it: no key before it, some, and as many as the kernel takes; normed or not, so small
/// that eps counts, in whole states and in rings, with and without keys of its own; and what the states hold then.
pub fn case(g: &mut Gen) -> Case {
    let (heads, dim, group) = (g.pick(&[1, 2, 3]), g.pick(&[32, 64, 128, 256, 512]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[0, 1, 2, 16, 63, 64, 65, 130, 400, 511, KEYS - 1]);
    let window = g.coin().then(|| g.pick(&[1, 2, 40, 64, 300]));
    let (capped, whole) = (g.coin(), g.coin());
    recorded(g, Drawn { heads, dim, group, position, window, capped, whole })
}

/// What of a case its row chooses: heads of keys and of queries for each, their length, what the row sees, whether scores are capped and whether
/// heads rotate as a whole.
#[derive(Copy, Clone, Debug)]
pub(super) struct Drawn {
    pub heads: u32,
    pub dim: u32,
    pub group: u32,
    pub position: u32,
    pub window: Option<u32>,
    pub capped: bool,
    pub whole: bool,
}

/// The same with that given.
pub(super) fn recorded(g: &mut Gen, drawn: Drawn) -> Case {
    let k = drawn.group * drawn.heads * drawn.dim;
    recorded_for(g, drawn, |case, _, packed| case.expect_as(packed, Compare::Packed { k }))
}

/// The same with what reads the packed attention.
pub(super) fn recorded_for(
    g: &mut Gen,
    Drawn { heads, dim, group, position, window, capped, whole }: Drawn,
    read: impl FnOnce(&mut Case, &mut Gen, Tensor),
) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let width = heads * dim;
    let ring = window.map(|window| window + g.pick(&[0, 3]));
    let kinds = [StateKind::Kv { ty, width, ring }; 2];
    let mut case = Case::with_states(1, &kinds, 2, if position < 512 { 512 } else { KEYS });
    case.input.positions = vec![position];
    case.input.sequences = vec![g.pick(&[0, 1])];
    let mask = window.map_or(Mask::Causal, |window| Mask::Window(window as usize));
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: capped.then_some(5.0) };
    let own = g.coin();
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(if whole { dim } else { dim / 2 }, 1e4));
    let mut kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let wq = (!own || g.coin()).then(|| case.vector(g, dim));
    let q = wq.map_or(q, |w| rms_norm(&mut case.rec, q, Some(w), 1e-6));
    let q = rope(&mut case.rec, q, table);
    if own {
        let k = case.uniform(g, width, size).heads(heads);
        // Values far larger than the keys beside them, whose blocks must not be scaled by them.
        let large = g.coin();
        let v = if large { case.uniform(g, width, 1e3) } else { case.tensor(g, width) }.heads(heads);
        let wk = g.coin().then(|| case.vector(g, dim));
        let k = wk.map_or(k, |w| rms_norm(&mut case.rec, k, Some(w), 1e-6));
        let v = if !large && g.coin() { rms_norm(&mut case.rec, v, None, 1e-6) } else { v };
        let k = rope(&mut case.rec, k, table);
        kv = kv_append(&mut case.rec, kv, k, v);
    }
    let y = attention(&mut case.rec, q, kv, heads, attend);
    let y = pack_q8(&mut case.rec, y);
    read(&mut case, g, y);
    // What a later step finds: this row's value, and by a score of its key how much that counts beside the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.fast = true;
    case
}
