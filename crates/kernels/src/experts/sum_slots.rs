//! Sums of the slots of each row.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    SUM_SLOTS: "sum_slots",
    wgsl: ["experts/sum_slots.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, k: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::sum_slots,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y\[t\] = sum of x[t, j].
#[derive(Clone, Debug)]
pub struct SumSlots {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { SumSlots }

/// y[t, d] = sum_j x[t, j, d], in the order of the slots; `x` [T, k, D]; returns [T, D], f32.
pub fn sum_slots(rec: &mut Recorder<impl From<SumSlots>>, x: Tensor) -> Tensor {
    let y = rec.make(Shape { heads: 1, ..x.shape });
    rec.push(SumSlots { x, y });
    y
}

impl Operation for SumSlots {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for SumSlots {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { n: self.y.shape.elements() as u32, dim: self.y.shape.dim, k: self.x.shape.heads };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for SumSlots {
    fn reference(&self, host: &mut Host<'_>) {
        let (slots, dim) = (self.x.shape.heads as usize, self.x.shape.dim as usize);
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::sum_slots(x, slots, dim, y));
    }
}
