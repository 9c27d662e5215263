//! Both products of a few rows with their experts' weights, the gated activation and its packing in
//! one kernel, in tiles of an expert's slots. The planner makes it; it is never recorded.

use super::group_experts::Groups;
use super::matmul_rows8_experts::eight;
use super::matmul_vec_q8_experts_glu::MatmulExpertsGlu;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, fixed};
use crate::matmul::matmul_rows8::threads;
use crate::norm::pack_q8::BLOCK;

kernel! {
    MATMUL_ROWS8_EXPERTS_GLU: "matmul_rows8_experts_glu",
    wgsl: [
        "experts/matmul_rows8_experts_glu.wgsl", steps, "matmul/pieces/rows8_sums.wgsl", "matmul/pieces/rows8_slots.wgsl", threads,
        "shared/unit.wgsl", activation, "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl",
        "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, gate_stride: u32, gate_first: u32, up_stride: u32, up_first: u32, per: u32, heads: u32, tiles: u32, exchange: u32
    },
    bindings: Bind { x: Read, gate: Weight(Rows), up: Weight(Rows), slots: Read, tiles: Read, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 7744 },
    variants: {
        SLOTS_4_SILU: "matmul_rows8_experts_glu_4_silu" {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_4_SILU_MEDIUM: "matmul_rows8_experts_glu_4_silu_medium" needs { threads: 64, workgroup_bytes: 3872 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_4_SILU_SHORT: "matmul_rows8_experts_glu_4_silu_short" needs { threads: 32, workgroup_bytes: 1936 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_4_GELU: "matmul_rows8_experts_glu_4_gelu" {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        SLOTS_4_GELU_MEDIUM: "matmul_rows8_experts_glu_4_gelu_medium" needs { threads: 64, workgroup_bytes: 3872 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        SLOTS_4_GELU_SHORT: "matmul_rows8_experts_glu_4_gelu_short" needs { threads: 32, workgroup_bytes: 1936 } {
            steps: choose ["matmul/pieces/rows8_steps_4.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        SLOTS_8_SILU: "matmul_rows8_experts_glu_8_silu" needs { threads: 128, workgroup_bytes: 11904 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_8_SILU_MEDIUM: "matmul_rows8_experts_glu_8_silu_medium" needs { threads: 64, workgroup_bytes: 5952 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_8_SILU_SHORT: "matmul_rows8_experts_glu_8_silu_short" needs { threads: 32, workgroup_bytes: 2976 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 1 },
            activation: choose ["shared/silu4.wgsl"],
        },
        SLOTS_8_GELU: "matmul_rows8_experts_glu_8_gelu" needs { threads: 128, workgroup_bytes: 11904 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 128, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        SLOTS_8_GELU_MEDIUM: "matmul_rows8_experts_glu_8_gelu_medium" needs { threads: 64, workgroup_bytes: 5952 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 64, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
        SLOTS_8_GELU_SHORT: "matmul_rows8_experts_glu_8_gelu_short" needs { threads: 32, workgroup_bytes: 2976 } {
            steps: choose ["matmul/pieces/rows8_steps_8.wgsl"],
            threads: vary { TEAM: 32, TEAMS: 1 },
            activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"],
        },
    },
}

/// By slots at a time (4 and 8), activation (silu and gelu) and threads (128, 64 and 32).
const VARIANTS: [[[&Variant; 3]; 2]; 2] = [
    [
        [&SLOTS_4_SILU, &SLOTS_4_SILU_MEDIUM, &SLOTS_4_SILU_SHORT],
        [&SLOTS_4_GELU, &SLOTS_4_GELU_MEDIUM, &SLOTS_4_GELU_SHORT],
    ],
    [
        [&SLOTS_8_SILU, &SLOTS_8_SILU_MEDIUM, &SLOTS_8_SILU_SHORT],
        [&SLOTS_8_GELU, &SLOTS_8_GELU_MEDIUM, &SLOTS_8_GELU_SHORT],
    ],
];

/// The dispatch of this kernel.
pub(crate) fn lower(op: &MatmulExpertsGlu, groups: &Groups, cx: &Lower<'_>) -> Dispatch {
    let (of, other) = (&op.gate.of, &op.up.of);
    let (k, n, tiles) = (of.w.cols, of.y.shape.dim, groups.tiles.shape.rows);
    let (x, gate, up) = (op.gate.packed.into(), of.w.into(), other.w.into());
    let bind = Bind { x, gate, up, slots: groups.slots.into(), tiles: groups.tiles.into(), packed: op.packed.into() };
    let (gate_stride, gate_first, up_stride, up_first) = (of.stride(), of.first, other.stride(), other.first);
    let (per, heads, exchange) = (of.per(), of.x.shape.heads, cx.caps.subgroup_size);
    let params = Params { k, n, gate_stride, gate_first, up_stride, up_first, per, heads, tiles, exchange };
    let variant = VARIANTS[usize::from(eight(&of.routes))][usize::from(op.gelu)][threads(k)];
    bind.dispatch(variant, params, Grid::PerRow { lead: fixed(1, 1), per_row: tiles * (n / BLOCK) })
}
