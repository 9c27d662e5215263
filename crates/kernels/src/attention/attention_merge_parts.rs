//! Joins the parts of the attention of several rows, in f32 or in f16. The planner makes it; it is
//! never recorded.

use super::attention_merge::Form;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid};
use crate::norm::pack_f16::pitches;

kernel! {
    ATTENTION_MERGE_PARTS: "attention_merge_parts",
    wgsl: ["attention/attention_merge_parts.wgsl", "attention/pieces/parts_f32.wgsl", "shared/grid.wgsl"],
    params: Params { heads: u32, head_dim: u32, rows: u32, splits: u32, row_pitch: u32, slab_pitch: u32 },
    bindings: Bind { partial: Read, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 0 },
}

kernel! {
    ATTENTION_MERGE_PARTS_F16: "attention_merge_parts_f16",
    entry: "attention_merge_parts",
    wgsl: [
        "attention/attention_merge_parts.wgsl", "attention/pieces/parts_f16.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl"
    ],
    params: PackedParams { heads: u32, head_dim: u32, rows: u32, splits: u32, row_pitch: u32, slab_pitch: u32 },
    bindings: PackedBind { partial: Read, scales: Write, halves: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 0 },
}

/// Threads of a workgroup.
const WG: u32 = 128;

/// The dispatch that joins `splits` parts of an attention of this shape, [T, N, H], in f32 to `y`
/// or packed to f16.
pub(super) fn dispatch(shape: Shape, splits: u32, partial: Tensor, y: Tensor, form: &Form) -> Dispatch {
    let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
    let (heads, head_dim, rows, partial) = (shape.heads, shape.dim, shape.rows, partial.into());
    let Form::F16(pack) = form else {
        let params = Params { heads, head_dim, rows, splits, row_pitch: 0, slab_pitch: 0 };
        return Bind { partial, y: y.into() }.dispatch(params, grid);
    };
    let (row_pitch, slab_pitch) = pitches(shape.width(), pack.slab);
    let params = PackedParams { heads, head_dim, rows, splits, row_pitch, slab_pitch };
    PackedBind { partial, scales: pack.scales.into(), halves: pack.halves.into() }.dispatch(params, grid)
}
