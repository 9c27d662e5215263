//! Joins the parts of the attention of several rows. The planner makes it; it is never recorded.

use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid};

kernel! {
    ATTENTION_MERGE_PARTS: "attention_merge_parts",
    wgsl: ["attention/attention_merge_parts.wgsl", "shared/grid.wgsl"],
    params: Params { heads: u32, head_dim: u32, rows: u32, splits: u32 },
    bindings: Bind { partial: Read, y: Write },
    cpu: cpu_ref::attention,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 0 },
}

/// Threads of a workgroup.
const WG: u32 = 128;

/// The dispatch that joins `splits` parts of an attention of this shape, [T, N, H].
pub(super) fn dispatch(shape: Shape, splits: u32, [partial, y]: [Tensor; 2]) -> Dispatch {
    let params = Params { heads: shape.heads, head_dim: shape.dim, rows: shape.rows, splits };
    let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
    Bind { partial: partial.into(), y: y.into() }.dispatch(params, grid)
}
