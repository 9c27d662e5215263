//! Up to three products in f32 of one row, as in [`norm_matmul_vec_group`], with weights of many
//! rows.
//!
//! [`norm_matmul_vec_group`]: crate::matmul::norm_matmul_vec_group

use super::norm_matmul_vec_group::NORM_MATMUL_VEC_GROUP;
use crate::caps::Caps;
use crate::graph::tensor::Weight;
use crate::kernel::{Kernel, format};

kernel! {
    NORM_MATMUL_VEC_TEAMS: "norm_matmul_vec_teams",
    wgsl: [
        "matmul/norm_matmul_vec_teams.wgsl", "matmul/pieces/acts_staged.wgsl", "matmul/pieces/vec_sums.wgsl", "shared/norm_share.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    like: NORM_MATMUL_VEC_GROUP,
    reads: Teams,
    needs: { threads: 128, workgroup_bytes: 10592 },
}

/// Rows of a weight per workgroup.
pub(crate) const WEIGHT_ROWS: u32 = 32;

/// Whether a kernel of teams serves these weights, `each` of their rows to a workgroup: it reads
/// their types, and its workgroups are at least as many as the device runs at the same time.
pub(crate) fn serves(kernel: &Kernel, weights: &[Weight], each: u32, caps: &Caps) -> bool {
    let rows: u32 = weights.iter().map(|w| w.rows).sum();
    let reads = |w: &Weight| format::format(w.ty).is_some_and(|format| format.teams().is_some());
    weights.iter().all(reads) && rows >= each * caps.table.workgroups && kernel.fits(caps)
}
