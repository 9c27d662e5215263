//! Attention of few rows, each of another sequence, over few keys, with what comes before it, for heads of 128 that are normed alike and rotate as a
//! whole: one kernel where others take three. Made by the planner, never recorded.

use super::attention_short::AttentionShort;
use super::attention_short_128::short_whole;
use super::norm_rope_heads::NormRopeHeads;
use super::{Attend, attention, kv_append, pack_q8, rms_norm, rope};
use crate::compare::Compare;
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower};
use crate::record::RopeTable;
use crate::row::Row;
use crate::tensor::{KvState, StateKind};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_SHORT_BATCH: "attention_short_batch",
    entry: "attention_short_batch",
    wgsl: [
        "attention_short_batch.wgsl", "shared/short_keys.wgsl", "shared/heads_1.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { q_heads: u32, heads: u32, group: u32, rows: u32, capacity: u32, normed: u32, exchange: u32, eps: f32, scale: f32 },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

kernel! {
    ATTENTION_SHORT_BATCH_2: "attention_short_batch_2" = ATTENTION_SHORT_BATCH with
    wgsl: [
        "attention_short_batch.wgsl", "shared/short_keys.wgsl", "shared/heads_2.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

const HEAD_DIM: u32 = 128;

/// The row that serves an attention of several rows, the heads of queries that a workgroup of it takes together, and all of its heads.
pub(super) fn served<'a>(op: &'a AttentionShort, caps: &Caps) -> Option<(&'static Row, u32, &'a NormRopeHeads)> {
    let heads = short_whole(op).filter(|heads| heads.q.shape.rows > 1)?;
    let (row, together) = match heads.q.shape.heads / op.split.of.kv_heads {
        group if group.is_multiple_of(2) => (&ATTENTION_SHORT_BATCH_2, 2),
        _ => (&ATTENTION_SHORT_BATCH, 1),
    };
    row.fits(caps).then_some((row, together, heads))
}

/// Its dispatch.
pub(super) fn lower(op: &AttentionShort, cx: &Lower<'_>) -> Option<Dispatch> {
    let (row, together, heads) = served(op, cx.caps)?;
    let (attention, append) = (&op.split.of, &heads.append);
    let shape = heads.q.shape;
    let params = Params {
        q_heads: shape.heads,
        heads: attention.kv_heads,
        group: shape.heads / attention.kv_heads,
        rows: shape.rows,
        capacity: 0,
        normed: u32::from(heads.norm_q.is_some()),
        exchange: cx.caps.subgroup_size,
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
        packed: op.merge.y.into(),
    };
    Some(Dispatch { row, ..bind.dispatch(params, Grid::PerRow { lead: shape, per_row: shape.heads / together }) })
}

/// Rows of sequences of their own behind others that the states hold, as models record them: no key before them, some of each quarter of those
/// taken at a time, all, one more, and many; normed or not, heads so small that eps counts; two of one sequence, which the other form serves; and what the states hold then.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, heads, group) = (g.pick(&[2, 3, 4, 5]), g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3, 4]));
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
    let y = pack_q8(&mut case.rec, y);
    case.expect_as(y, Compare::Packed { k: group * width });
    // What a later step finds: each row's value, and by a score of its key how much that counts beside the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.fast = true;
    case
}
