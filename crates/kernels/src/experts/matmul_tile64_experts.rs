//! Products of many rows with their experts' weights through cooperative matrices, in tiles of up
//! to 64 slots. The planner makes it.

use super::group_experts::Groups;
use super::matmul_experts::MatmulExperts;
use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};
use crate::kernel::split::parts;
use crate::matmul::matmul_tile128;
use crate::matmul::problem::Rounds;
use crate::norm::pack_f16::unpacked;

kernel! {
    MATMUL_TILE64_EXPERTS: "matmul_tile64_experts",
    wgsl: ["experts/matmul_tile64_experts.wgsl", store, "matmul/pieces/four_of_pairs.wgsl", "shared/unit.wgsl"],
    params: Params { k: u32, n: u32, slab: u32, stride: u32, first: u32, row_base: u32, row_count: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight(Staged), slots: Read, tiles: Read, y: Write },
    cpu: cpu_ref::matmul_experts,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 23552 },
    variants: {
        // Results in whole quads, and others.
        QUADS: "matmul_tile64_experts" { store: choose ["matmul/pieces/slots_store_quads.wgsl"] },
        TAIL: "matmul_tile64_experts_tail" { store: choose ["matmul/pieces/slots_store.wgsl"] },
    },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 128;

/// The product of experts with packed rows, in the order of their slots, in place of `of.x`.
#[derive(Clone, Debug)]
pub struct MatmulTile64Experts {
    pub of: MatmulExperts,
    /// The scales and the halves of [`gather_slots`](crate::norm::gather_slots).
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
        Io {
            reads: [self.halves, self.scales, self.of.routes.experts].into_iter().chain(groups).collect(),
            writes: vec![self.of.y],
        }
    }

    fn work(&self, counts: Counts) -> Work {
        self.of.work(counts)
    }
}

impl Lowering for MatmulTile64Experts {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let MatmulExperts { w, first, routes, y, .. } = self.of;
        let Groups { slots, tiles, .. } = routes.groups.expect("a product that the kernels serve");
        let (n, k, slab, stride) = (y.shape.dim, w.cols, self.halves.shape.rows, self.of.stride());
        let grid = Grid::Tiles { lead: fixed(tiles.shape.rows, 1), tile: 1, x: n.div_ceil(WEIGHT_ROWS) };
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let (row_base, row_count) = (range.start, range.len() as u32);
            let in_quads = [n, stride, first, row_base, row_count].iter().all(|rows| rows.is_multiple_of(4));
            let [x, scales, slots, tiles, y] = [self.halves, self.scales, slots, tiles, y].map(Arg::from);
            let params = Params { k, n, slab, stride, first, row_base, row_count };
            let bind = Bind { x, scales, w: Arg::Weight(w, part as u32), slots, tiles, y };
            bind.dispatch(if in_quads { &QUADS } else { &TAIL }, params, grid)
        };
        parts(cx.caps, w.ty, w.rows, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulTile64Experts {
    /// The product with the values that the packed rows represent, and with the weights rounded to
    /// f16.
    fn reference(&self, host: &mut Host<'_>) {
        let (k, per) = (self.of.w.cols as usize, self.of.per() as usize);
        let slots = self.of.routes.groups.expect("a product that the kernels serve").slots;
        let of_slots = unpacked(host.f32(self.scales), host.u32(self.halves), k, self.halves.shape.rows);
        let mut x = vec![0.0; of_slots.len() / per];
        for (&slot, row) in host.u32(slots).iter().zip(of_slots.chunks_exact(k)) {
            x[slot as usize / per * k..][..k].copy_from_slice(row);
        }
        in_one_turn(self.of.compute(host, &x, true));
    }
}
