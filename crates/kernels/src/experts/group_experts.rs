//! The slots of a step sorted by expert, so that an expert's weights are read once for many rows.

use super::route;
use crate::caps::table::measured::EXPERTS_TILE_SLOTS;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Input, Lead, Shape, Tensor};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};

kernel! {
    GROUP_EXPERTS: "group_experts",
    wgsl: ["experts/group_experts.wgsl", "shared/grid.wgsl"],
    params: Params { experts: u32, k: u32, tile: u32, tiles: u32 },
    bindings: Bind { step_rows: Read, experts: Read, slots: Write, tiles: Write },
    cpu: cpu_ref::group_experts,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// Slots per tile: the most that a workgroup of `matmul_tile64_experts` multiplies.
pub(crate) const TILE: u32 = 64;

/// Slots that one workgroup takes: `SLOTS` in `matmul_experts.wgsl` and
/// `matmul_experts_input.wgsl`.
const SHARE: u32 = 32;

/// The slots of a step, sorted by expert and cut into tiles.
#[derive(Copy, Clone, Debug)]
pub struct Groups {
    /// u32 [T, k]: slot numbers, sorted by expert.
    pub slots: Tensor,
    /// u32 [M, 3]: expert, index of its first slot, number of slots; all zero after the last tile.
    /// M is the largest number of tiles that T rows can need.
    pub tiles: Tensor,
    /// Largest number of slots of a tile: 8 or 64.
    pub most: u32,
}

impl Values for Groups {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        [&mut self.slots, &mut self.tiles].into_iter().for_each(f);
    }
}

impl Groups {
    /// Workgroups that share a tile where each takes 32 slots.
    pub(crate) fn shares(&self) -> u32 {
        self.most.div_ceil(SHARE)
    }
}

/// The largest number of tiles that this number of slots can need.
fn most_tiles(slots: u64, count: u32, most: u32) -> Shape {
    // The last tile of an expert with at least one slot lacks at most `most` - 1 slots.
    let serving = u64::from(count).min(slots);
    fixed(((slots + serving * u64::from(most - 1)) / u64::from(most)) as u32, 3)
}

/// slots, tiles = the numbers 0 .. T k, sorted by `experts`.
#[derive(Clone, Debug)]
pub struct GroupExperts {
    pub experts: Tensor,
    pub count: u32,
    pub step_rows: Tensor,
    pub groups: Groups,
}

parameters! { GroupExperts }
values! { GroupExperts: experts, step_rows, groups }

/// Groups the slots of `experts` [T, k] u32. Every expert number is below `count`.
pub fn group_experts(rec: &mut Recorder<impl From<GroupExperts>>, experts: Tensor, count: u32) -> Groups {
    assert!(
        experts.shape.lead == Lead::Step && (1..=route::MAX_EXPERTS).contains(&count),
        "group_experts: {count} experts"
    );
    let step_rows = rec.input(Input::Rows);
    let slots = experts.shape.elements();
    let tiles = most_tiles(slots, count, TILE);
    let (slots, tiles) = (rec.make_of(Element::U32, experts.shape), rec.make_of(Element::U32, tiles));
    let groups = Groups { slots, tiles, most: TILE };
    rec.push(GroupExperts { experts, count, step_rows, groups });
    groups
}

impl GroupExperts {
    /// This operation with small tiles. `new` makes the value that holds these tiles.
    pub(crate) fn in_small_tiles(&self, new: impl FnOnce(Shape) -> Tensor) -> Self {
        let tiles = new(most_tiles(self.experts.shape.elements(), self.count, EXPERTS_TILE_SLOTS));
        Self { groups: Groups { tiles, most: EXPERTS_TILE_SLOTS, ..self.groups }, ..self.clone() }
    }
}

impl Operation for GroupExperts {
    fn io(&self) -> Io {
        Io { reads: vec![self.experts, self.step_rows], writes: vec![self.groups.slots, self.groups.tiles] }
    }
}

impl Lowering for GroupExperts {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Groups { slots, tiles, most } = self.groups;
        let params = Params { experts: self.count, k: self.experts.shape.dim, tile: most, tiles: tiles.shape.rows };
        let (step_rows, experts) = (self.step_rows.into(), self.experts.into());
        let grid = Grid::PerRow { lead: fixed(self.count, 1), per_row: 1 };
        vec![Bind { step_rows, experts, slots: slots.into(), tiles: tiles.into() }.dispatch(params, grid)]
    }
}

impl Reference for GroupExperts {
    fn reference(&self, host: &mut Host<'_>) {
        let experts = host.u32(self.experts);
        let mut slots = vec![0; experts.len()];
        let mut tiles = cpu_ref::group_experts(experts, self.groups.most as usize, &mut slots);
        tiles.resize(self.groups.tiles.shape.rows_at(host.counts()) as usize, [0; 3]);
        host.put_u32(self.groups.slots, slots);
        host.put_u32(self.groups.tiles, tiles.into_flattened());
    }
}
