//! The attention operations of plans: in parts of the keys, and merged with the operations before
//! and after. The ladder chooses their kernels.

use super::attention::{Attend, Attention, Cached};
use super::attention_merge::{AttentionMerge, Form};
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::Arg;
use crate::norm::norm_rope::NormRope;
use crate::norm::norm_rope_append::NormRopeAppend;
use crate::norm::norm_rope_heads::NormRopeHeads;
use crate::norm::pack_f16::PackF16;
use cpu_ref::Mask;

/// partial = for every part its sum of values, maximum and sum of weights; with one part, the
/// result.
#[derive(Clone, Debug)]
pub struct AttentionSplit {
    pub of: Cached,
    pub splits: u32,
    /// [T, N, splits, H + 4], or the result of one part, [T, N, H].
    pub partial: Tensor,
}

/// The attention in 8 bits of one row or of rows that are each of another sequence, or the
/// attention in f32 of one row.
#[derive(Clone, Debug)]
pub struct AttentionDecode {
    pub heads: Box<Heads>,
    pub split: Box<AttentionSplit>,
    pub merge: AttentionMerge,
}

/// y = an attention in one of two forms. A step chooses between them.
#[derive(Clone, Debug)]
pub struct AttentionByLength {
    pub of: Cached,
    pub rows: Box<Rows>,
    /// Tiles of rows, with their keys in parts: for rows that share many keys, as a turn of a long
    /// conversation does.
    pub tiles: Option<Box<FlashParts>>,
    /// The packing of y to f16. With it, every form writes y in f16 alone.
    pub pack: Option<PackF16>,
}

impl AttentionByLength {
    /// This attention with y in f16, if every form joins parts and y is not packed yet.
    pub(crate) fn packed(&self, pack: PackF16) -> Option<Self> {
        let joins = self.pack.is_none() && matches!(&*self.rows, Rows::Split(_, Some(_)));
        joins.then(|| Self { pack: Some(pack), ..self.clone() })
    }

    /// How the joins write y.
    pub(super) fn form(&self) -> Form {
        self.pack.clone().map_or(Form::F32, |pack| Form::F16(pack.into()))
    }
}

/// The form for other steps.
#[derive(Clone, Debug)]
pub enum Rows {
    /// Every row by itself, with the join of its parts if there are several.
    Split(AttentionSplit, Option<AttentionMerge>),
    /// All keys of a row, or of a tile of rows, in one workgroup.
    Whole(Attention),
}

/// An attention in tiles of rows, with the keys in parts, and their join.
#[derive(Clone, Debug)]
pub struct FlashParts {
    pub of: Cached,
    pub splits: u32,
    /// [T, N, splits, H + 4].
    pub partial: Tensor,
}

/// scales, halves = the attention in f16, of rows that are each of another sequence.
#[derive(Clone, Debug)]
pub struct AttentionDecodeRowsF16 {
    pub heads: Box<NormRopeHeads>,
    pub split: Box<AttentionSplit>,
    /// The join of the parts, if there are several.
    pub merge: Option<AttentionMerge>,
    /// The form for rows that share many keys.
    pub tiles: Option<Box<FlashParts>>,
    pub pack: PackF16,
}

impl AttentionDecodeRowsF16 {
    /// The attention without the operations before and after it.
    pub(crate) fn attention(&self) -> AttentionByLength {
        let rows = Rows::Split((*self.split).clone(), self.merge.clone());
        AttentionByLength { of: self.split.of, rows: rows.into(), tiles: self.tiles.clone(), pack: None }
    }
}

/// What a plan asks of the ladder. A rung destructures [`Attend`] completely, so that a new field
/// does not compile until every rung handles it.
#[derive(Copy, Clone)]
pub enum Problem<'a> {
    /// Few keys, with the operations before the attention and the packing to 8 bits, if any.
    Decode(&'a AttentionDecode),
    /// Few keys of rows that are each of another sequence, with the operations before the attention
    /// and the packing to f16.
    DecodeF16(&'a AttentionDecodeRowsF16),
    /// The keys of a window in parts, with the operations before. A product joins and packs the
    /// parts.
    Window(&'a AttentionDecode),
    /// Keys in parts, with the operations before.
    DecodeSplit(&'a AttentionDecode),
    /// Keys in parts.
    Split(&'a AttentionSplit),
    /// An attention as recorded.
    Recorded(&'a Attention),
}

/// The operation that finishes the queries before the attention.
#[derive(Clone, Debug)]
pub enum Heads {
    /// It also finishes keys and values, and appends them.
    All(NormRopeHeads),
    /// It finishes the queries only: the states already hold this row's key and value.
    Queries(NormRope),
}

/// The operands that finish the queries and, if present, the row's key and value; and which of them
/// are normed.
pub(crate) struct Finished {
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

    /// One bit per norm; the query's is the lowest.
    pub fn norms(&self) -> u32 {
        self.norm_q | self.norm_k << 1 | self.norm_v << 2
    }
}

impl From<&NormRopeHeads> for Finished {
    fn from(NormRopeHeads { append, q, norm_q, .. }: &NormRopeHeads) -> Self {
        Self::new(*q, *norm_q, append.table, append.eps, Some(append))
    }
}

/// The bindings of a kernel that finishes its heads: the tensors that it reads, under common names,
/// and the tensor that it writes.
macro_rules! bind_finished {
    ($bind:ident, $finished:expr, $of:expr, $($written:ident: $tensor:expr),+) => {{
        let (finished, of): (&$crate::attention::fused::Finished, &$crate::attention::attention::Cached) = ($finished, $of);
        $bind {
            q: finished.q,
            k: finished.k,
            v: finished.v,
            wq: finished.wq,
            wk: finished.wk,
            table: finished.table.into(),
            positions: of.positions.into(),
            sequences: of.sequences.into(),
            k_state: of.kv.k.into(),
            v_state: of.kv.v.into(),
            $($written: $tensor.into()),+
        }
    }};
}

pub(super) use bind_finished;

impl Heads {
    fn operation(&self) -> &dyn Operation {
        match self {
            Self::All(heads) => heads,
            Self::Queries(rope) => rope,
        }
    }

    /// The queries before norm and rotation.
    pub(crate) fn queries(&self) -> Tensor {
        match self {
            Self::All(heads) => heads.q,
            Self::Queries(rope) => rope.x,
        }
    }
}

impl AttentionDecode {
    pub(crate) fn finished(&self) -> Finished {
        match &*self.heads {
            Heads::All(heads) => heads.into(),
            Heads::Queries(NormRope { x, w, eps, table, .. }) => Finished::new(*x, *w, *table, *eps, None),
        }
    }
}

/// The number of keys in a window; 0 without a window.
pub(crate) fn window(mask: Mask) -> u32 {
    if let Mask::Window(n) = mask { n as u32 } else { 0 }
}

/// Head length of the kernels for heads with uniform norms that rotate as a whole.
pub(crate) const HEAD_DIM: u32 = 128;

/// `heads`, if the kernels for heads of [`HEAD_DIM`] elements can read them: queries and keys are
/// both normed or both not normed, values are not normed, heads have this length and rotate as a
/// whole, scores are not capped, and rows see every key before them.
pub(crate) fn heads_of_128(heads: &NormRopeHeads, attend: Attend) -> Option<&NormRopeHeads> {
    let Attend { mask, scale: _, softcap } = attend;
    let append = &heads.append;
    let plain = mask == Mask::Causal
        && softcap.is_none()
        && !append.norm_v
        && heads.norm_q.is_some() == append.norm_k.is_some();
    let whole = heads.q.shape.dim == HEAD_DIM && append.table.shape.dim == HEAD_DIM;
    (plain && whole).then_some(heads)
}

impl Operation for AttentionSplit {
    fn io(&self) -> Io {
        Io { writes: vec![self.partial], ..self.of.io() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Operation for AttentionByLength {
    fn io(&self) -> Io {
        let io = self.of.io();
        let writes = self.pack.as_ref().map_or_else(|| io.writes.clone(), |pack| pack.io().writes);
        Io { writes, ..io }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Operation for AttentionDecode {
    fn io(&self) -> Io {
        let mut io = self.heads.operation().io();
        io.reads.extend([self.split.of.positions, self.split.of.sequences]);
        Io { writes: vec![self.merge.y], ..io }
    }

    fn work(&self, counts: Counts) -> Work {
        self.heads.operation().work(counts)
    }
}

impl Operation for AttentionDecodeRowsF16 {
    fn io(&self) -> Io {
        let mut io = self.heads.io();
        io.reads.extend([self.split.of.positions, self.split.of.sequences]);
        Io { writes: self.pack.io().writes, ..io }
    }

    fn work(&self, counts: Counts) -> Work {
        self.heads.work(counts)
    }
}
