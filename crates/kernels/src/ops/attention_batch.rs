//! Attention of some rows, each of another sequence, over few keys, with what comes before it and the packing to f16 behind it, for heads of 128 that
//! are normed alike and rotate as a whole: one kernel where others take four. Made by the planner, never recorded.

use super::attention_merge::AttentionMerge;
use super::attention_short::keys_of_rows;
use super::attention_short_128::whole;
use super::attention_split::AttentionSplit;
use super::norm_rope_heads::NormRopeHeads;
use super::pack_f16::{PackF16, pack_f16_as_is, pitches};
use super::{Attend, Io, Op, Operation, Work, attention, kv_append, rms_norm, rope};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers, When};
use crate::record::RopeTable;
use crate::row::Row;
use crate::tensor::{Counts, KvState, StateKind, Tensor};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_BATCH: "attention_batch",
    entry: "attention_batch",
    wgsl: [
        "attention_batch.wgsl", "shared/batch_heads.wgsl", "shared/short_keys.wgsl", "shared/heads_1.wgsl", "shared/head_turns.wgsl", "shared/sixteen.wgsl",
        "shared/sixteen_share.wgsl", "shared/half_scale.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, row_pitch: u32, slab_pitch: u32, eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        scales: Write, halves: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-6,
}

kernel! {
    ATTENTION_BATCH_2: "attention_batch_2" = ATTENTION_BATCH with
    wgsl: [
        "attention_batch.wgsl", "shared/batch_heads.wgsl", "shared/short_keys.wgsl", "shared/heads_2.wgsl", "shared/head_turns.wgsl", "shared/sixteen.wgsl",
        "shared/sixteen_share.wgsl", "shared/half_scale.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_BATCH_4: "attention_batch_4" = ATTENTION_BATCH with
    wgsl: [
        "attention_batch.wgsl", "shared/batch_heads.wgsl", "shared/short_keys.wgsl", "shared/heads_4.wgsl", "shared/head_turns.wgsl", "shared/sixteen.wgsl",
        "shared/sixteen_share.wgsl", "shared/half_scale.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

const HEAD_DIM: u32 = 128;
/// Workgroups from which on a workgroup takes four heads rather than two.
const MANY_WORKGROUPS: u32 = 192;

/// scales, halves = f16 of the attention of some rows.
#[derive(Clone, Debug)]
pub struct AttentionBatch {
    pub heads: Box<NormRopeHeads>,
    pub split: Box<AttentionSplit>,
    /// The join of the parts, where there are several.
    pub merge: Option<AttentionMerge>,
    pub pack: PackF16,
}

/// The row for so many rows of this attention, and the heads of queries that a workgroup of it takes together.
fn row(q: Tensor, kv_heads: u32) -> (&'static Row, u32) {
    match q.shape.heads / kv_heads {
        group if group.is_multiple_of(4) && q.shape.rows * q.shape.heads / 4 >= MANY_WORKGROUPS => (&ATTENTION_BATCH_4, 4),
        group if group.is_multiple_of(2) => (&ATTENTION_BATCH_2, 2),
        _ => (&ATTENTION_BATCH, 1),
    }
}

/// Packing, as it is, of the attention of rows that nobody else reads, with what comes before that. Values that a state holds in f16 need no scale to be
/// packed: none of their means is larger than they are, and what of it is lost below the least of f16 is what the state lost of them.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackF16(pack) = op else { return None };
    let (split, merge) = match makers.alone(pack.x)? {
        Op::AttentionMerge(merge) if !merge.packed => match makers.alone(merge.partial)? {
            Op::AttentionSplit(split) => (split, Some(merge)),
            _ => return None,
        },
        Op::AttentionSplit(split) => (split, None),
        _ => return None,
    };
    let q = split.of.q;
    let heads = match makers.alone(q)? {
        Op::NormRopeHeads(heads) if heads.append.state.k == split.of.kv.k => heads,
        _ => return None,
    };
    let fits = whole(heads, split.of.attend).is_some() && row(q, split.of.kv_heads).0.fits(makers.caps);
    let held = !pack.scaled || matches!(makers.kind(split.of.kv.v), StateKind::Kv { ty: KvType::F16, .. });
    if q.shape.rows == 1 || heads.q.shape != q.shape || !fits || !held {
        return None;
    }
    let of = std::iter::once(pack.x).chain(merge.map(|merge| merge.partial)).chain([q]).collect();
    let pack = PackF16 { scaled: false, ..pack.clone() };
    let op = AttentionBatch { heads: heads.clone().into(), split: split.clone().into(), merge: merge.cloned(), pack };
    Some(Absorbed { op: op.into(), of, early: false })
}

impl AttentionBatch {
    fn batch(&self, cx: &Lower<'_>) -> Dispatch {
        let (attention, heads, append) = (&self.split.of, &self.heads, &self.heads.append);
        let shape = heads.q.shape;
        let (row_pitch, slab_pitch) = pitches(self.pack.x.shape, self.pack.slab);
        let (row, together) = row(heads.q, attention.kv_heads);
        let params = Params {
            q_heads: shape.heads,
            heads: attention.kv_heads,
            group: shape.heads / attention.kv_heads,
            rows: shape.rows,
            capacity: 0,
            normed: u32::from(heads.norm_q.is_some()),
            exchange: cx.caps.subgroup_size,
            row_pitch,
            slab_pitch,
            eps: append.eps,
            scale: attention.attend.scale * std::f32::consts::LOG2_E,
        };
        let bind = Bind {
            q: heads.q.into(),
            k: append.k.into(),
            v: append.v.into(),
            wq: Arg::from(heads.norm_q),
            wk: Arg::from(append.norm_k),
            table: append.table.into(),
            positions: attention.positions.into(),
            sequences: attention.sequences.into(),
            k_state: attention.kv.k.into(),
            v_state: attention.kv.v.into(),
            scales: self.pack.scales.into(),
            halves: self.pack.halves.into(),
        };
        Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads / together }) }
    }
}

impl Operation for AttentionBatch {
    fn io(&self) -> Io {
        let mut io = self.heads.io();
        io.reads.extend([self.split.of.positions, self.split.of.sequences]);
        Io { writes: self.pack.io().writes, ..io }
    }

    fn work(&self, counts: Counts) -> Work {
        self.heads.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let keys = keys_of_rows(self.heads.q.shape.rows, cx.caps.table.short_keys);
        let near = Dispatch { when: When::Near(keys), ..self.batch(cx) };
        let merge = self.merge.as_ref().map_or_else(Vec::new, |merge| merge.lower(cx));
        let far = [self.heads.lower(cx), self.split.lower(cx), merge, self.pack.lower(cx)].concat();
        let far = far.into_iter().map(|dispatch| Dispatch { when: When::Far(keys), ..dispatch });
        std::iter::once(near).filter(|_| keys > 0).chain(far).collect()
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Rows of sequences of their own behind others that the states hold, as models record them: no key before them, some of each quarter of those
/// taken at a time, all, one more, and many; normed or not, heads so small that eps counts; two of one sequence, which the other form serves; for
/// every number of heads that a workgroup takes; and what the states hold then.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    // Four heads together where there are many.
    let (rows, heads, group) = g.pick(&[(2, 1, 1), (3, 2, 2), (4, 1, 3), (5, 3, 4), (2, 3, 6), (17, 3, 16), (25, 4, 8)]);
    let width = heads * HEAD_DIM;
    let mut case = Case::with_states(rows, &[StateKind::Kv { ty, width, ring: None }; 2], rows + 1, 512);
    let first = g.pick(&[0, 1]);
    case.input.sequences = (0..rows).rev().map(|row| row + first).collect();
    case.input.positions = (0..rows).map(|_| g.pick(&[0, 1, 2, 16, 20, 40, 56, 64, 65, 130, 400, 511])).collect();
    if g.pick(&[false, false, true]) {
        case.input.sequences[1] = case.input.sequences[0];
        case.input.positions[..2].copy_from_slice(&[30, 31]);
    }
    let attend = Attend { mask: Mask::Causal, scale: 1.0 / (HEAD_DIM as f32).sqrt(), softcap: None };
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let (k, v) = (case.uniform(g, width, size).heads(heads), case.tensor(g, width).heads(heads));
    let normed = g.coin();
    let [q, k] = [q, k].map(|x| {
        let w = normed.then(|| case.vector(g, HEAD_DIM));
        let x = w.map_or(x, |w| rms_norm(&mut case.rec, x, Some(w), 1e-6));
        rope(&mut case.rec, x, table)
    });
    let states = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, states, k, v);
    let y = attention(&mut case.rec, q, kv, heads, attend);
    let (scales, halves) = pack_f16_as_is(&mut case.rec, y.flat());
    case.expect_as(scales, Compare::Exact);
    case.expect_as(halves, Compare::Halves);
    // What a later step finds: each row's value, and by a score of its key how much that counts beside the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Caps;
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::table::Table;
    use crate::tensor::{Lead, Shape, Weight};
    use crate::{Class, ops};
    use gguf::GgmlType;

    const CAPS: Caps = Caps {
        cooperative: true,
        max_storage_buffers: 16,
        max_workgroup_bytes: 32 << 10,
        table: Table::usual(Class::Discrete, true),
        ..Caps::WEBGPU
    };

    /// The rows of a fast plan for so many rows of an attention with 8 heads of 4 queries over such states, and of the product that reads it.
    fn rows(caps: &Caps, rows: u32, ty: KvType) -> Vec<(&'static str, When)> {
        let (width, q_width) = (8 * HEAD_DIM, 32 * HEAD_DIM);
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[StateKind::Kv { ty, width, ring: None }; 2]);
        let table = rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
        let [q, k, v] = [q_width, width, width].map(|width| rec.host_input(width, Shape::new(Lead::Step, rows, width)));
        let [q, k] = [q.heads(32), k.heads(8)].map(|x| rope(&mut rec, x, table));
        let states = KvState::new(rec.state(0), rec.state(1));
        let kv = kv_append(&mut rec, states, k, v.heads(8));
        let y = attention(&mut rec, q, kv, 8, Attend { mask: Mask::Causal, scale: 0.1, softcap: None });
        let w = Weight { id: 0, ty: GgmlType::Q8_0, rows: 64, cols: q_width };
        let y = ops::matmul(&mut rec, w, y.flat());
        rec.output(y);
        let options = PlanOptions { fast: true, ..PlanOptions::default() };
        plan(&rec, caps, &options).unwrap().steps.iter().map(|step| (step.dispatch.row.name, step.dispatch.when)).collect()
    }

    #[test]
    fn a_batch_over_values_in_f16_is_one_kernel_near_and_four_far() {
        let (near, far, product) = (When::Near(2048), When::Far(2048), ("matmul_few_32_narrow", When::Always));
        let others = [("norm_rope_heads", far), ("attention_split_4", far), ("attention_merge", far), ("pack_f16", far), product];
        assert_eq!(rows(&CAPS, 32, KvType::F16), [vec![("attention_batch_4", near)], others.to_vec()].concat());
        let apart = others.map(|(row, _)| (row, When::Always));
        assert_eq!(rows(&CAPS, 32, KvType::Q8_0), apart);
        assert_eq!(rows(&Caps { max_storage_buffers: 11, ..CAPS }, 32, KvType::F16), apart);
    }

    #[test]
    fn few_rows_take_two_heads_to_a_workgroup_and_many_need_no_join() {
        assert_eq!(rows(&CAPS, 16, KvType::F16)[0].0, "attention_batch_2");
        let names: Vec<_> = rows(&CAPS, 64, KvType::F16).iter().map(|row| row.0).collect();
        assert_eq!(names, ["attention_batch_4", "norm_rope_heads", "attention_split_4", "pack_f16", "matmul_few_64_narrow"]);
    }
}
