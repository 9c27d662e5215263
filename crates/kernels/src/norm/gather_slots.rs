//! Packed rows in the order of the slots of experts, for products whose tiles hold the slots of one
//! expert. The planner makes it; parity cases record it.

use super::pack_f16::put_rows;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};

kernel! {
    GATHER_SLOTS: "gather_slots",
    wgsl: ["norm/gather_slots.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, slots: u32, slab: u32, per: u32, heads: u32 },
    bindings: Bind { x: Read, x_scales: Read, slots: Read, scales: Write, halves: Write },
    cpu: cpu_ref::gather_rows,
    nmse: 1e-12,
    needs: { threads: 64, workgroup_bytes: 0 },
}

/// scales, halves = the scale and the packed row of every slot, in the order of `slots`.
#[derive(Clone, Debug)]
pub struct GatherSlots {
    /// The halves of [`pack_f16`](crate::norm::pack_f16), `heads` rows of `k` elements for a
    /// row of the step.
    pub x: Tensor,
    /// The scales of `x`, one for a row of the step.
    pub x_scales: Tensor,
    /// Rows of `x` for a row of the step.
    pub heads: u32,
    /// u32 [T, chosen]: the numbers of the slots, in any order.
    pub slots: Tensor,
    /// f32 [T, chosen].
    pub scales: Tensor,
    /// f16 [k / 16, M, 16], M the rows of a slab.
    pub halves: Tensor,
}

/// Rows that a tile may read past the last slot.
const PAST: u32 = 15;

/// The shapes of the scales and of the halves, in words, of slots with rows of `k` elements.
#[must_use]
pub fn gathered_shapes(slots: Shape, k: u32) -> [Shape; 2] {
    [slots, fixed((slots.elements() as u32 + PAST).next_multiple_of(16), k / 2)]
}

/// Gathers the rows of `x` [T, heads k / 2] words of f16 in the order of `slots` [T, chosen]. Each
/// row of `x` belongs to chosen / heads slots. Returns the scales [T, chosen] f32 and the halves.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn gather_slots(
    rec: &mut Recorder<impl From<GatherSlots>>,
    x: Tensor,
    x_scales: Tensor,
    heads: u32,
    slots: Tensor,
) -> (Tensor, Tensor) {
    let [of_scales, of_halves] = gathered_shapes(slots.shape, 2 * x.shape.width() / heads);
    let (scales, halves) = (rec.make(of_scales), rec.make_of(Element::F16, of_halves));
    rec.push(GatherSlots { x, x_scales, heads, slots, scales, halves });
    (scales, halves)
}

impl GatherSlots {
    /// Elements of a row.
    pub(crate) fn k(&self) -> u32 {
        2 * self.halves.shape.width()
    }

    /// Rows of a slab.
    pub(crate) fn slab(&self) -> u32 {
        self.halves.shape.rows
    }

    /// Slots that have the same row of `x`.
    fn per(&self) -> u32 {
        self.slots.shape.width() / self.heads
    }
}

impl Operation for GatherSlots {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.x_scales, self.slots], writes: vec![self.scales, self.halves] }
    }
}

impl Lowering for GatherSlots {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let of = self.slots.shape;
        let params =
            Params { k: self.k(), slots: of.elements() as u32, slab: self.slab(), per: self.per(), heads: self.heads };
        let [x, x_scales, slots, scales, halves] =
            [self.x, self.x_scales, self.slots, self.scales, self.halves].map(Into::into);
        vec![
            Bind { x, x_scales, slots, scales, halves }
                .dispatch(params, Grid::PerRow { lead: of, per_row: of.width() }),
        ]
    }
}

impl Reference for GatherSlots {
    fn reference(&self, host: &mut Host<'_>) {
        let (k, per) = (self.k() as usize, self.per());
        let rows: Vec<u32> = host.u32(self.slots).iter().map(|&slot| slot / per).collect();
        let of_scales: Vec<u32> = rows.iter().map(|row| row / self.heads).collect();
        let (mut scales, mut words) = (vec![0.0; rows.len()], vec![0.0; rows.len() * k / 2]);
        cpu_ref::gather_rows(host.f32(self.x_scales), &of_scales, &mut scales);
        cpu_ref::gather_rows(bytemuck::cast_slice(host.u32(self.x)), &rows, &mut words);
        let mut halves = vec![0; self.slab() as usize * k / 2];
        put_rows(bytemuck::cast_slice(&words), &mut halves, k, self.slab());
        host.put(self.scales, scales);
        host.put_u32(self.halves, halves);
    }
}
