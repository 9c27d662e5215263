//! Both products of a gated activation in f32 of one row, as in [`norm_matmul_vec_glu`], with
//! weights of many rows.
//!
//! [`norm_matmul_vec_glu`]: crate::matmul::norm_matmul_vec_glu

use super::norm_matmul_vec_glu::NORM_MATMUL_VEC_GLU;

kernel! {
    NORM_MATMUL_VEC_GLU_TEAMS: "norm_matmul_vec_glu_teams",
    wgsl: [
        "matmul/norm_matmul_vec_glu_teams.wgsl", "matmul/pieces/acts_staged.wgsl", "matmul/pieces/vec_sums.wgsl", activation,
        "shared/norm_share.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    like: NORM_MATMUL_VEC_GLU,
    reads: Teams,
    needs: { threads: 128, workgroup_bytes: 10528 },
    variants: {
        SILU: "norm_matmul_vec_glu_teams_silu" { activation: choose ["shared/silu4.wgsl"] },
        GELU: "norm_matmul_vec_glu_teams_gelu" { activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// Results per workgroup.
pub(crate) const RESULTS: u32 = 16;
