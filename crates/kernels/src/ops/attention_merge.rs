//! Joins the parts of a split attention. Made by the planner, never recorded.

use super::attention::{Attention, Drawn, appended_as};
use super::pack_q8::BLOCK;
use super::{Io, Op, Operation, Work};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Counts, Shape, Tensor};
use cpu_ref::{KvType, Mask};

kernel! {
    ATTENTION_MERGE: "attention_merge",
    entry: "attention_merge",
    wgsl: [
        "attention_merge.wgsl", "shared/merged_f32.wgsl", "shared/part_weights.wgsl", "shared/attention_part.wgsl", "shared/grid.wgsl"
    ],
    params: Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 },
    bindings: Bind { partial: Read, positions: Read, ends: Read, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
}

kernel! {
    ATTENTION_MERGE_Q8: "attention_merge_q8",
    entry: "attention_merge",
    wgsl: [
        "attention_merge.wgsl", "shared/merged_q8.wgsl", "shared/part_weights.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl",
        "shared/attention_part.wgsl", "shared/grid.wgsl"
    ],
    params: PackedParams { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 },
    bindings: PackedBind { partial: Read, positions: Read, ends: Read, packed: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-4,
}

/// Threads of a workgroup.
const WG: u32 = 256;
/// Elements of a head that a workgroup joins at least.
const LEAST: u32 = 32;

/// Elements of a head that a workgroup joins: so many that each of its threads has four of one or two parts.
fn chunk(head_dim: u32, splits: u32) -> u32 {
    head_dim.min(4 * (WG >> (splits - 1).ilog2())).max(LEAST)
}

/// y = the join of `partial`, as floats or in 8 bits.
#[derive(Clone, Debug)]
pub struct AttentionMerge {
    pub partial: Tensor,
    pub positions: Tensor,
    pub ends: Tensor,
    /// That of the attention, [T, N, H].
    pub shape: Shape,
    pub mask: Mask,
    pub splits: u32,
    pub y: Tensor,
    pub packed: bool,
}

impl AttentionMerge {
    pub(crate) fn of(of: &Attention, splits: u32, partial: Tensor) -> Self {
        let Attention { positions, ends, q, attend, y, .. } = *of;
        Self { partial, positions, ends, shape: q.shape, mask: attend.mask, splits, y, packed: false }
    }
}

/// Packing of what a merge made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackQ8(pack) = op else { return None };
    let Op::AttentionMerge(merge) = makers.alone(pack.x)? else { return None };
    if !merge.shape.dim.is_multiple_of(BLOCK) {
        return None;
    }
    Some(Absorbed { op: AttentionMerge { y: pack.packed, packed: true, ..merge.clone() }.into(), of: vec![pack.x], early: false })
}

impl Operation for AttentionMerge {
    fn io(&self) -> Io {
        Io { reads: vec![self.partial, self.positions, self.ends], writes: vec![self.y] }
    }

    /// The parts are there only because the attention was split, which counts what it must move.
    fn work(&self, _: Counts) -> Work {
        Work::default()
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Shape { heads, dim: head_dim, rows, .. } = self.shape;
        let causal = u32::from(self.mask != Mask::Bidirectional);
        let window = if let Mask::Window(n) = self.mask { n as u32 } else { 0 };
        let splits = self.splits;
        let (partial, positions, ends) = (self.partial.into(), self.positions.into(), self.ends.into());
        let grid = Grid::PerRow { lead: self.shape, per_row: heads * (head_dim / chunk(head_dim, splits)).max(1) };
        vec![match self.packed {
            false => Bind { partial, positions, ends, y: self.y.into() }
                .dispatch(Params { heads, head_dim, rows, causal, window, splits }, grid),
            true => PackedBind { partial, positions, ends, packed: self.y.into() }
                .dispatch(PackedParams { heads, head_dim, rows, causal, window, splits }, grid),
        }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// As the case of the split, read as floats or in 8 bits; windows of one key, and as many parts as there can be.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, dim) = (g.pick(&[1, 2, 5]), g.pick(&[32, 64, 128, 256, 512]));
    let (packed, late, window) = (g.coin(), g.coin(), g.pick(&[None, None, Some(1), Some(1500)]));
    appended_as(g, Drawn { ty, window, rows, dim, packed, late, ..Drawn::default() })
}
