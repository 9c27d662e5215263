//! Attention of few rows in parts of their keys, so that many workgroups share a long context. Made by the planner, never recorded.

use super::attention::{Attention, Drawn, appended_as};
use super::attention_deep;
use super::{Io, Op, Operation, Work};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::{Node, Origin};
use crate::row::Row;
use crate::tensor::{Counts, Shape, Tensor};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_SPLIT: "attention_split",
    entry: "attention_split",
    wgsl: [
        "attention_split.wgsl", "shared/heads_1.wgsl", "shared/slice_8.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ],
    params: Params {
        heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32,
        scale: f32, softcap: f32
    },
    bindings: Bind { q: Read, positions: Read, ends: Read, sequences: Read, k_state: Kv, v_state: Kv, partial: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
}

kernel! {
    ATTENTION_SPLIT_2: "attention_split_2" = ATTENTION_SPLIT with
    wgsl: [
        "attention_split.wgsl", "shared/heads_2.wgsl", "shared/slice_8.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_SPLIT_4: "attention_split_4" = ATTENTION_SPLIT with
    wgsl: [
        "attention_split.wgsl", "shared/heads_4.wgsl", "shared/slice_8.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_SPLIT_LONG: "attention_split_long" = ATTENTION_SPLIT with
    wgsl: [
        "attention_split.wgsl", "shared/heads_1.wgsl", "shared/slice_16.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ]
}

kernel! {
    ATTENTION_SPLIT_LONG_2: "attention_split_long_2" = ATTENTION_SPLIT with
    wgsl: [
        "attention_split.wgsl", "shared/heads_2.wgsl", "shared/slice_16.wgsl", "shared/attention_part.wgsl", "shared/lanes.wgsl",
        "shared/grid.wgsl"
    ]
}

/// Rows up to which keys are split.
const MAX_ROWS: u32 = 64;
/// Keys of a part at least, where a window says how many there are.
const LEAST_KEYS: u32 = 32;
/// Parts at most.
const MAX_SPLITS: u32 = 64;
/// Threads of a workgroup.
pub(super) const WG: u32 = 128;
/// Words beside the values of a part: its maximum and its sum of weights.
pub(super) const BESIDE: u32 = 4;
/// Elements of a head that one thread holds: of heads up to [`LONG`], and of longer ones.
const PER_LANE: [u32; 2] = [8, 16];
const LONG: u32 = 256;

/// partial = every part's sum of values, maximum and sum of weights, or the result where there is one part.
#[derive(Clone, Debug)]
pub struct AttentionSplit {
    pub of: Attention,
    pub splits: u32,
    /// [T, N, splits, H + 4], or the result of one part, [T, N, H].
    pub partial: Tensor,
}

/// The row of an attention, and the heads that its workgroups take together: as many as divide the group that shares keys and fit registers.
fn row(of: &Attention, caps: &Caps) -> (&'static Row, u32) {
    let (group, long) = (of.q.shape.heads / of.kv_heads, of.q.shape.dim > LONG);
    let fits = |n: u32| group.is_multiple_of(n) && !(long && n > 2);
    let usual = match (long, [4, 2].into_iter().find(|&n| fits(n))) {
        (false, Some(4)) => (&ATTENTION_SPLIT_4, 4),
        (false, Some(_)) => (&ATTENTION_SPLIT_2, 2),
        (false, None) => (&ATTENTION_SPLIT, 1),
        (true, Some(_)) => (&ATTENTION_SPLIT_LONG_2, 2),
        (true, None) => (&ATTENTION_SPLIT_LONG, 1),
    };
    attention_deep::fitting(of, caps).unwrap_or(usual)
}

/// Splits the attentions of few rows; their results are joined by [`super::attention_merge`].
pub(crate) fn split(nodes: Vec<Node>, origins: &mut Vec<(Origin, Shape)>, caps: &Caps) -> Vec<Node> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Op::Attention(of) = &node.op else {
            out.push(node);
            continue;
        };
        let Shape { rows, heads, dim, .. } = of.q.shape;
        let slice = PER_LANE[usize::from(dim > LONG)];
        let lanes = dim / slice;
        let sets = rows * heads / row(of, caps).1;
        let fitting = caps.max_binding_bytes / (4 * u64::from(rows) * u64::from(heads) * u64::from(dim + BESIDE));
        let filled = if let Mask::Window(n) = of.attend.mask { (n as u32).div_ceil(LEAST_KEYS).max(2) } else { MAX_SPLITS };
        let splits = (caps.table.split_workgroups / sets).clamp(1, MAX_SPLITS).min(u32::try_from(fitting).unwrap_or(u32::MAX)).min(filled);
        if rows > MAX_ROWS || splits == 0 || !dim.is_multiple_of(slice) || !lanes.is_power_of_two() {
            out.push(node);
            continue;
        }
        if splits == 1 {
            out.push(Node { op: AttentionSplit { of: of.clone(), splits, partial: of.y }.into(), layer: node.layer });
            continue;
        }
        let shape = Shape { heads: heads * splits, dim: dim + BESIDE, ..of.q.shape };
        origins.push((Origin::Made, shape));
        let partial = Tensor { id: origins.len() as u32 - 1, shape };
        let merge = super::attention_merge::AttentionMerge::of(of, splits, partial);
        out.push(Node { op: AttentionSplit { of: of.clone(), splits, partial }.into(), layer: node.layer });
        out.push(Node { op: merge.into(), layer: node.layer });
    }
    out
}

impl Operation for AttentionSplit {
    fn io(&self) -> Io {
        Io { writes: vec![self.partial], ..self.of.io() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Attention { q, kv, kv_heads, attend, positions, ends, sequences, .. } = &self.of;
        let shape = q.shape;
        let params = Params {
            heads: shape.heads,
            kv_heads: *kv_heads,
            head_dim: shape.dim,
            rows: shape.rows,
            capacity: 0,
            causal: u32::from(attend.mask != Mask::Bidirectional),
            window: if let Mask::Window(n) = attend.mask { n as u32 } else { 0 },
            splits: self.splits,
            exchange: cx.caps.subgroup_size.min(WG),
            scale: attend.scale,
            softcap: attend.softcap.unwrap_or(0.0),
        };
        let bind = Bind {
            q: (*q).into(),
            positions: (*positions).into(),
            ends: (*ends).into(),
            sequences: (*sequences).into(),
            k_state: kv.k.into(),
            v_state: kv.v.into(),
            partial: self.partial.into(),
        };
        let (row, together) = row(&self.of, cx.caps);
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads / together * self.splits };
        vec![Dispatch { row, ..bind.dispatch(params, grid) }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Few rows over keys in one part and in as many as there can be, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, dim) = (g.pick(&[1, 1, 2, 5, 64]), g.pick(&[16, 64, 128, 256, 512]));
    // Two long heads are taken together here, four by `attention_deep_long`.
    let group = (dim > LONG).then(|| g.pick(&[1, 2]));
    appended_as(g, Drawn { ty, rows, dim, group, ..Drawn::default() })
}
