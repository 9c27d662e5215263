//! Products of many rows with their experts' weights through cooperative matrices, in tiles of 64
//! or 128 slots. The planner makes it.

use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::lower::matmul::ladder::Rounds;
use crate::lower::matmul::matmul_tile128;
use crate::lower::pack::pack_f16::unpacked;
use crate::ops::group_experts::{Groups, TILES};
use crate::ops::matmul_experts::MatmulExperts;

kernel! {
    MATMUL_TILE64_EXPERTS: "matmul_tile64_experts",
    wgsl: ["matmul/matmul_tile64_experts.wgsl", bands, "matmul/pieces/tile128_quads.wgsl"],
    params: Params { k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, row_base: u32, row_count: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight, slots: Read, tiles: Read, y: Write },
    cpu: cpu_ref::matmul_experts,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 19456 },
    variants: {
        // BANDS: groups of 16 slots in a tile.
        SLOTS_64: "matmul_tile64_experts" { bands: vary { BANDS: 4 } },
        SLOTS_128: "matmul_tile128_experts" needs { threads: 128, workgroup_bytes: 24576 } { bands: vary { BANDS: 8 } },
    },
}

kernel! {
    MATMUL_TILE64_EXPERTS_GROUPS: "matmul_tile64_experts_groups",
    entry: "matmul_tile64_experts",
    wgsl: [
        "matmul/matmul_tile64_experts.wgsl", bands, "shared/unit.wgsl", "matmul/pieces/tile128_groups.wgsl",
        "matmul/pieces/tile128_ahead.wgsl"
    ],
    params: GroupsParams { k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, row_base: u32, row_count: u32 },
    bindings: GroupsBind { x: Read, scales: Read, w: Groups, slots: Read, tiles: Read, y: Write },
    cpu: cpu_ref::matmul_experts,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 19456 },
    variants: {
        GROUPS_64: "matmul_tile64_experts_groups" { bands: vary { BANDS: 4 } },
        GROUPS_128: "matmul_tile128_experts_groups" needs { threads: 128, workgroup_bytes: 24576 } { bands: vary { BANDS: 8 } },
    },
}

/// The forms for tiles of 64 and of 128 slots: of weights in quads, and in groups of 32 columns.
const FORMS: [[&Variant; 2]; 2] = [[&SLOTS_64, &GROUPS_64], [&SLOTS_128, &GROUPS_128]];

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 128;

/// The product of experts with packed rows in place of `of.x`.
#[derive(Clone, Debug)]
pub struct MatmulTile64Experts {
    pub of: MatmulExperts,
    /// The scales of [`pack_f16`](crate::lower::pack::pack_f16::pack_f16), one for all rows of
    /// `of.x` of a row of the step.
    pub scales: Tensor,
    pub halves: Tensor,
}

/// Whether the kernels take a product of experts in a plan that rounds like this: rows whose slots
/// are grouped, on devices with cooperative matrices.
#[must_use]
pub fn serves(of: &MatmulExperts, rounds: Rounds, caps: &Caps) -> bool {
    rounds == Rounds::Freely && caps.cooperative && of.routes.groups.is_some() && matmul_tile128::serves(of.w)
}

impl Operation for MatmulTile64Experts {
    fn io(&self) -> Io {
        let groups = self.of.routes.groups.iter().flat_map(|groups| [groups.slots, groups.tiles]);
        Io { reads: [self.halves, self.scales, self.of.routes.experts].into_iter().chain(groups).collect(), writes: vec![self.of.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Lowering for MatmulTile64Experts {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let MatmulExperts { w, first, x, routes, y } = self.of;
        let Groups { slots, tiles, most } = routes.groups.expect("a product that the kernels serve");
        let (n, k, stride, per, heads) = (y.shape.dim, w.cols, self.of.stride(), self.of.per(), x.shape.heads);
        let in_groups = format::format(w.ty).is_some_and(|f| f.units.is_some());
        let [quads, units] = FORMS[usize::from(most > TILES[0])];
        let grid = Grid::Tiles { lead: fixed(tiles.shape.rows, 1), tile: 1, x: n.div_ceil(WEIGHT_ROWS) };
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let (row_base, row_count, weight) = (range.start, range.len() as u32, Arg::Weight(w, part as u32));
            let [x, scales, slots, tiles, y] = [self.halves, self.scales, slots, tiles, y].map(Arg::from);
            match in_groups {
                true => {
                    let params = GroupsParams { k, n, stride, first, per, heads, row_base, row_count };
                    GroupsBind { x, scales, w: weight, slots, tiles, y }.dispatch(units, params, grid)
                }
                false => {
                    let params = Params { k, n, stride, first, per, heads, row_base, row_count };
                    Bind { x, scales, w: weight, slots, tiles, y }.dispatch(quads, params, grid)
                }
            }
        };
        parts(cx.caps, w.ty, w.rows, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulTile64Experts {
    /// The product with the values that the packed rows represent, and with the weights rounded to
    /// f16.
    fn reference(&self, host: &mut Host<'_>) {
        let x = unpacked(host.f32(self.scales), host.u32(self.halves), self.of.x.shape.width() as usize, 0);
        self.of.compute(host, &x, true);
    }
}
