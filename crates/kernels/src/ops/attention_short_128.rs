//! Attention of one row over few keys, with what comes before it, for heads of 128 that are normed alike and rotate as a whole: without barriers
//! before the join, since 32 threads do for themselves what a workgroup shares elsewhere. Made by the planner, never recorded.

use super::attention_short::{AttentionShort, Heads};
use super::norm_rope_heads::NormRopeHeads;
use super::{Attend, attention, kv_append, pack_q8, rms_norm, rope};
use crate::compare::Compare;
use crate::device::Caps;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, fixed};
use crate::record::RopeTable;
use crate::tensor::{KvState, StateKind};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_SHORT_128: "attention_short_128",
    entry: "attention_short_128",
    wgsl: [
        "attention_short_128.wgsl", "shared/short_keys.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        q_heads: u32, heads: u32, group: u32, rows_apart: u32, normed: u32, exchange: u32, kv_heads_per_head: f32, eps: f32, scale: f32
    },
    bindings: Bind {
        q: Read, k: Read, v: Read, wq: Read, wk: Read, table: Read, positions: Read, sequences: Read, k_state: KvBoth, v_state: KvBoth,
        packed: Write
    },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

const HEAD_DIM: u32 = 128;

/// The heads of an attention that this row serves.
pub(super) fn served<'a>(op: &'a AttentionShort, caps: &Caps) -> Option<&'a NormRopeHeads> {
    short_whole(op).filter(|_| ATTENTION_SHORT_128.fits(caps))
}

/// The heads of an attention, where they are normed alike and rotate as a whole.
pub(super) fn short_whole(op: &AttentionShort) -> Option<&NormRopeHeads> {
    let Heads::All(heads) = &*op.heads else { return None };
    whole(heads, op.split.of.attend)
}

/// The same of those before any attention.
pub(super) fn whole(heads: &NormRopeHeads, attend: Attend) -> Option<&NormRopeHeads> {
    let append = &heads.append;
    let plain =
        attend.mask == Mask::Causal && attend.softcap.is_none() && !append.norm_v && heads.norm_q.is_some() == append.norm_k.is_some();
    let whole = heads.q.shape.dim == HEAD_DIM && append.table.shape.dim == HEAD_DIM;
    (plain && whole).then_some(heads)
}

/// Its dispatch.
pub(super) fn lower(op: &AttentionShort, heads: &NormRopeHeads, cx: &Lower<'_>) -> Dispatch {
    let (attention, append) = (&op.split.of, &heads.append);
    let (q_heads, kv_heads) = (heads.q.shape.heads, attention.kv_heads);
    let params = Params {
        q_heads,
        heads: kv_heads,
        group: q_heads / kv_heads,
        rows_apart: 0,
        normed: u32::from(heads.norm_q.is_some()),
        exchange: cx.caps.subgroup_size,
        kv_heads_per_head: kv_heads as f32 / q_heads as f32,
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
    bind.dispatch(params, Grid::PerRow { lead: fixed(1, 1), per_row: q_heads })
}

/// A row behind others that the states hold, as models record it: no key before it, some of each quarter of those taken at a time, all, one more, and as
/// many as the kernel takes; normed or not, and so small that eps counts; and what the states of one sequence and of two hold then.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (heads, group) = (g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3]));
    let width = heads * HEAD_DIM;
    let position = g.pick(&[0, 1, 2, 16, 20, 40, 56, 64, 65, 130, 400, 511]);
    let sequences = g.pick(&[1, 2]);
    let mut case = Case::with_states(1, &[StateKind::Kv { ty, width, ring: None }; 2], sequences, 512);
    case.input.positions = vec![position];
    case.input.sequences = vec![g.pick(&[0, sequences - 1])];
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
    // What a later step finds: this row's value, and by a score of its key how much that counts beside the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.fast = true;
    case
}
