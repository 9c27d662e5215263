//! Derivative of the choice of the rows that get logits.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, Lead, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GATHER_ROWS_BACKWARD: "gather_rows_backward",
    wgsl: ["elementwise/gather_rows_backward.wgsl", "shared/grid.wgsl"],
    params: Params { dim: u32, rows: u32, most: u32 },
    bindings: Bind { dy: Read, out_rows: Read, step_rows: Read, dx: Write },
    cpu: cpu_ref::gather_rows_backward,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dx\[t\] = sum of dy\[o\] over the o with out_rows\[o\] = t.
#[derive(Clone, Debug)]
pub struct GatherRowsBackward {
    pub dy: Tensor,
    pub out_rows: Tensor,
    pub step_rows: Tensor,
    pub dx: Tensor,
}

parameters! { GatherRowsBackward }

/// The derivative of [`gather_rows`](crate::ops::gather_rows()) by its rows, from `dy` [Out, D];
/// returns [T, D], f32. The step's `out_rows` must rise.
pub fn gather_rows_backward(rec: &mut Recorder<impl From<GatherRowsBackward>>, dy: Tensor) -> Tensor {
    assert_eq!(dy.shape.lead, Lead::Out, "gather_rows_backward of the rows that were chosen");
    let (out_rows, step_rows) = (rec.input(Input::OutRows), rec.input(Input::Rows));
    let dx = rec.make(Shape::new(Lead::Step, rec.capacity().step, dy.shape.width()));
    rec.push(GatherRowsBackward { dy, out_rows, step_rows, dx });
    dx
}

impl Operation for GatherRowsBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.out_rows, self.step_rows], writes: vec![self.dx] }
    }
}

impl Lowering for GatherRowsBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.dx.shape.dim, rows: self.dx.shape.rows, most: self.dy.shape.rows };
        let grid = Grid::Elements { lead: self.dx.shape, workgroup: 256, per_thread: 1 };
        let [dy, out_rows, step_rows, dx] = [self.dy, self.out_rows, self.step_rows, self.dx].map(Into::into);
        vec![Bind { dy, out_rows, step_rows, dx }.dispatch(params, grid)]
    }
}

impl Reference for GatherRowsBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dx = host.take(self.dx);
        cpu_ref::gather_rows_backward(host.f32(self.dy), host.u32(self.out_rows), self.dx.shape.dim as usize, &mut dx);
        host.put(self.dx, dx);
    }
}
