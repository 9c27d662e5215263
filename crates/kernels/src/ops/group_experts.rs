//! The slots of a step by the expert that serves them, so that its weights are read once for many rows.

use super::{Io, Operation, route};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, fixed};
use crate::record::Recorder;
use crate::tensor::{Input, Lead, Shape, Tensor};

kernel! {
    GROUP_EXPERTS: "group_experts",
    entry: "group_experts",
    wgsl: ["group_experts.wgsl", "shared/grid.wgsl"],
    params: Params { experts: u32, k: u32, tile: u32, tiles: u32 },
    bindings: Bind { step_rows: Read, experts: Read, slots: Write, tiles: Write },
    cpu: cpu_ref::group_experts,
    nmse: 1e-12,
}

/// Slots per tile: `SLOTS` in `matmul_experts.wgsl`.
pub const TILE: u32 = 32;

/// The slots of a step, sorted by expert and cut into tiles.
#[derive(Copy, Clone, Debug)]
pub struct Groups {
    /// u32 [T, k]: slot numbers, those of the first expert first.
    pub slots: Tensor,
    /// u32 [M, 3]: expert, place of its first slot, slots; all zero after the last. M is what T rows can need at most.
    pub tiles: Tensor,
}

/// slots, tiles = the numbers 0 .. T k sorted by `experts`.
#[derive(Clone, Debug)]
pub struct GroupExperts {
    pub experts: Tensor,
    pub count: u32,
    pub step_rows: Tensor,
    pub groups: Groups,
}

/// Groups the slots of `experts` [T, k] u32, each below `count`.
pub fn group_experts(rec: &mut Recorder, experts: Tensor, count: u32) -> Groups {
    assert!(experts.shape.lead == Lead::Step && (1..=route::MAX_EXPERTS).contains(&count), "group_experts: {count} experts");
    let step_rows = rec.input(Input::Rows);
    // Every expert that serves any slot leaves at most TILE - 1 places of its last tile empty.
    let (slots, serving) = (experts.shape.elements(), u64::from(count).min(experts.shape.elements()));
    let tiles = (slots + serving * u64::from(TILE - 1)) / u64::from(TILE);
    let groups = Groups { slots: rec.make(experts.shape), tiles: rec.make(fixed(tiles as u32, 3)) };
    rec.push(GroupExperts { experts, count, step_rows, groups });
    groups
}

impl Operation for GroupExperts {
    fn io(&self) -> Io {
        Io { reads: vec![self.experts, self.step_rows], writes: vec![self.groups.slots, self.groups.tiles] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Groups { slots, tiles } = self.groups;
        let params = Params { experts: self.count, k: self.experts.shape.dim, tile: TILE, tiles: tiles.shape.rows };
        let (step_rows, experts) = (self.step_rows.into(), self.experts.into());
        let grid = Grid::PerRow { lead: fixed(self.count, 1), per_row: 1 };
        vec![Bind { step_rows, experts, slots: slots.into(), tiles: tiles.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let experts = host.u32(self.experts);
        let mut slots = vec![0; experts.len()];
        let mut tiles = cpu_ref::group_experts(experts, TILE as usize, &mut slots);
        tiles.resize(self.groups.tiles.shape.rows_at(host.counts()) as usize, [0; 3]);
        host.put_u32(self.groups.slots, slots);
        host.put_u32(self.groups.tiles, tiles.into_flattened());
    }
}

/// Distinct experts for every row: any of all, of a few, or always the first.
pub(super) fn choices(g: &mut Gen, rows: u32, count: u32, k: u32) -> Vec<f32> {
    let busy = g.pick(&[count, count, k]);
    let from = g.bits() as u32 % (count - busy + 1);
    let row = |g: &mut Gen| {
        let mut all: Vec<u32> = (from..from + busy).collect();
        (0..k as usize).for_each(|j| all.swap(j, j + g.bits() as usize % (busy as usize - j)));
        all.truncate(k as usize);
        all
    };
    (0..rows).flat_map(|_| row(g)).map(f32::from_bits).collect()
}

/// Choices among 1 to 1024 experts: many that serve nothing, or one that serves all; full and partial tiles.
pub fn case(g: &mut Gen) -> Case {
    let (rows, count) = (g.pick(&[1, 2, 9, 32, 33, 65, 258]), g.pick(&[1, 2, 8, 60, 128, 257, route::MAX_EXPERTS]));
    let k = g.pick(&[1, 2, 8, count]).min(count).min(64);
    let mut case = Case::new(rows);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let groups = group_experts(&mut case.rec, experts, count);
    case.expect_as(groups.slots, Compare::Exact);
    case.expect_as(groups.tiles, Compare::Exact);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Counts;

    #[test]
    fn tiles_of_the_worst_spread_fit_and_no_more_are_planned() {
        for (rows, k, count) in [(1, 1, 4), (9, 2, 3), (40, 2, 8), (512, 8, 128), (3, 8, 128)] {
            let mut rec = Recorder::new(Counts { step: rows, out: rows }, &[]);
            let experts = rec.host_input(0, Shape::new(Lead::Step, rows, k));
            let planned = group_experts(&mut rec, experts, count).tiles.shape.rows;
            // All experts but one serve one slot each, as far as there are slots.
            let slots = rows * k;
            let alone = (count - 1).min(slots - 1);
            let worst = alone + (slots - alone).div_ceil(TILE);
            assert!(planned >= worst && planned <= slots.div_ceil(TILE) + count, "{rows} x {k} of {count}: {planned} for {worst}");
        }
    }
}
