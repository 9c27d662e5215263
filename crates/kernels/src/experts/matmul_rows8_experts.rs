//! Products of a few rows of 8-bit activations with their experts' weights, in tiles of an expert's
//! slots, up to 8 slots at a time.

use super::group_experts::Groups;
use super::matmul_experts::MatmulExperts;
use super::matmul_vec_q8_experts::MatmulVecQ8Experts;
use super::route::Routes;
use crate::caps::table::measured::EXPERTS_FOUR_SLOTS;
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, fixed};
use crate::kernel::split::parts;
use crate::matmul::matmul_rows8::threads;

kernel! {
    MATMUL_ROWS8_EXPERTS: "matmul_rows8_experts",
    wgsl: [
        "experts/matmul_rows8_experts.wgsl", steps, "matmul/pieces/rows8_sums.wgsl", "matmul/pieces/rows8_slots.wgsl", threads,
        "shared/unit.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, tiles: u32, row_base: u32, row_count: u32, exchange: u32
    },
    bindings: Bind { x: Read, w: Weight(Rows), slots: Read, tiles: Read, y: Write },
    cpu: cpu_ref::matmul_experts,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4160 },
    variants: {
        SLOTS_4: "matmul_rows8_experts_4" { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        SLOTS_4_MEDIUM: "matmul_rows8_experts_4_medium" needs { threads: 64, workgroup_bytes: 2080 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        SLOTS_4_SHORT: "matmul_rows8_experts_4_short" needs { threads: 32, workgroup_bytes: 1040 } { steps: choose ["matmul/pieces/rows8_steps_4.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
        SLOTS_8: "matmul_rows8_experts_8" needs { threads: 128, workgroup_bytes: 6272 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 128, TEAMS: 1 } },
        SLOTS_8_MEDIUM: "matmul_rows8_experts_8_medium" needs { threads: 64, workgroup_bytes: 3136 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 64, TEAMS: 1 } },
        SLOTS_8_SHORT: "matmul_rows8_experts_8_short" needs { threads: 32, workgroup_bytes: 1568 } { steps: choose ["matmul/pieces/rows8_steps_8.wgsl"], threads: vary { TEAM: 32, TEAMS: 1 } },
    },
}

/// By slots at a time (4 and 8) and threads (128, 64 and 32).
const VARIANTS: [[&Variant; 3]; 2] =
    [[&SLOTS_4, &SLOTS_4_MEDIUM, &SLOTS_4_SHORT], [&SLOTS_8, &SLOTS_8_MEDIUM, &SLOTS_8_SHORT]];

/// Rows of weights per workgroup.
const WEIGHT_ROWS: u32 = 32;

/// Whether a workgroup takes eight slots at a time instead of four.
pub(crate) fn eight(routes: &Routes) -> bool {
    slots_per_expert(routes) > EXPERTS_FOUR_SLOTS
}

/// Slots per expert, on average, in a full step.
pub(crate) fn slots_per_expert(routes: &Routes) -> u32 {
    routes.experts.shape.elements().div_ceil(u64::from(routes.count)) as u32
}

/// The dispatches of a product whose slots are grouped, one for each part of the weight.
pub(crate) fn lower(op: &MatmulVecQ8Experts, groups: &Groups, cx: &Lower<'_>) -> Vec<Dispatch> {
    let MatmulExperts { w, first, x, routes, y } = op.of;
    let (n, k, tiles) = (y.shape.dim, w.cols, groups.tiles.shape.rows);
    let variant = VARIANTS[usize::from(eight(&routes))][threads(k)];
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let [packed, slots, list, y] = [op.packed, groups.slots, groups.tiles, y].map(Arg::from);
        let params = Params {
            k,
            n,
            stride: op.of.stride(),
            first,
            per: op.of.per(),
            heads: x.shape.heads,
            tiles,
            row_base: range.start,
            row_count: range.len() as u32,
            exchange: cx.caps.subgroup_size,
        };
        let grid = Grid::PerRow { lead: fixed(1, 1), per_row: tiles * n.div_ceil(WEIGHT_ROWS) };
        Bind { x: packed, w: Arg::Weight(w, part as u32), slots, tiles: list, y }.dispatch(variant, params, grid)
    };
    parts(cx.caps, w.ty, w.rows, k).into_iter().enumerate().map(one).collect()
}
