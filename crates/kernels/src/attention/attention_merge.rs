//! Joins the parts of a split attention. The planner makes it; it is never recorded.

use super::attention::{Attend, Cached};
use super::attention_merge_parts;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::pack_f16::PackF16;
use cpu_ref::Mask;

kernel! {
    ATTENTION_MERGE: "attention_merge",
    wgsl: [
        "attention/attention_merge.wgsl", "attention/pieces/merged_f32.wgsl", "attention/pieces/part_weights.wgsl",
        "attention/pieces/attention_part.wgsl", "shared/grid.wgsl"
    ],
    params: Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 },
    bindings: Bind { partial: Read, positions: Read, ends: Read, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 4864 },
}

kernel! {
    ATTENTION_MERGE_Q8: "attention_merge_q8",
    entry: "attention_merge",
    wgsl: [
        "attention/attention_merge.wgsl", "attention/pieces/merged_q8.wgsl", "attention/pieces/part_weights.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/q8_store.wgsl", "attention/pieces/attention_part.wgsl", "shared/grid.wgsl"
    ],
    params: PackedParams { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 },
    bindings: PackedBind { partial: Read, positions: Read, ends: Read, packed: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 7936 },
}

/// Threads of a workgroup.
const WG: u32 = 256;

/// Smallest number of head elements that a workgroup joins.
const LEAST: u32 = 32;

/// Head elements that a workgroup joins: chosen so that each of its threads takes four elements of
/// one or two parts.
fn chunk(head_dim: u32, splits: u32) -> u32 {
    head_dim.min(4 * (WG >> (splits - 1).ilog2())).max(LEAST)
}

/// How a join is written.
#[derive(Clone, Debug)]
pub enum Form {
    F32,
    /// In 8 bits.
    Q8,
    /// In f16, without scales.
    F16(Box<PackF16>),
}

/// y = the join of `partial`.
#[derive(Clone, Debug)]
pub struct AttentionMerge {
    pub partial: Tensor,
    pub positions: Tensor,
    pub ends: Tensor,
    /// The shape of the attention, [T, N, H].
    pub shape: Shape,
    pub mask: Mask,
    pub splits: u32,
    pub y: Tensor,
    pub form: Form,
}

impl AttentionMerge {
    pub(crate) fn of(of: &Cached, splits: u32, partial: Tensor) -> Self {
        let Cached { positions, ends, q, attend, y, .. } = *of;
        // Scale and softcap apply to the scores, which the parts have used already.
        let Attend { mask, scale: _, softcap: _ } = attend;
        Self { partial, positions, ends, shape: q.shape, mask, splits, y, form: Form::F32 }
    }

    /// Whether the join is written in 8 bits.
    pub(crate) fn in_8_bits(&self) -> bool {
        matches!(self.form, Form::Q8)
    }
}

impl Operation for AttentionMerge {
    fn io(&self) -> Io {
        let writes = if let Form::F16(pack) = &self.form { pack.io().writes } else { vec![self.y] };
        Io { reads: vec![self.partial, self.positions, self.ends], writes }
    }

    /// Counts nothing: the split attention counts the bytes that attention must move, and the parts
    /// exist only because of the split.
    fn work(&self, _: Counts) -> Work {
        Work::default()
    }
}

impl Lowering for AttentionMerge {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Shape { heads, dim: head_dim, rows, .. } = self.shape;
        if rows > 1 && !self.in_8_bits() {
            return vec![attention_merge_parts::dispatch(self.shape, self.splits, self.partial, self.y, &self.form)];
        }
        let causal = u32::from(self.mask != Mask::Bidirectional);
        let window = if let Mask::Window(n) = self.mask { n as u32 } else { 0 };
        let splits = self.splits;
        let (partial, positions, ends) = (self.partial.into(), self.positions.into(), self.ends.into());
        let grid = Grid::PerRow { lead: self.shape, per_row: heads * (head_dim / chunk(head_dim, splits)).max(1) };
        vec![match self.in_8_bits() {
            false => Bind { partial, positions, ends, y: self.y.into() }
                .dispatch(Params { heads, head_dim, rows, causal, window, splits }, grid),
            true => PackedBind { partial, positions, ends, packed: self.y.into() }
                .dispatch(PackedParams { heads, head_dim, rows, causal, window, splits }, grid),
        }]
    }
}
