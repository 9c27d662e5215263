//! Picks the rows whose logits the step asks for.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GATHER_ROWS: "gather_rows",
    wgsl: ["elementwise/gather_rows.wgsl", "shared/grid.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, out_rows: Read, y: Write },
    cpu: cpu_ref::gather_rows,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y\[o\] = x[out_rows\[o\]].
#[derive(Clone, Debug)]
pub struct GatherRows {
    pub x: Tensor,
    pub out_rows: Tensor,
    pub y: Tensor,
}

parameters! { GatherRows }
values! { GatherRows: x, out_rows, y }

/// The rows of `x` [T, D] that the step asks logits for; [Out, D], f32.
pub fn gather_rows(rec: &mut Recorder<impl From<GatherRows>>, x: Tensor) -> Tensor {
    let out_rows = rec.input(Input::OutRows);
    let y = rec.make(Shape { heads: 1, dim: x.shape.width(), ..out_rows.shape });
    rec.push(GatherRows { x, out_rows, y });
    y
}

impl Operation for GatherRows {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.out_rows], writes: vec![self.y] }
    }
}

impl Lowering for GatherRows {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.y.shape.dim, rows: self.y.shape.rows };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), out_rows: self.out_rows.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for GatherRows {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::gather_rows(host.f32(self.x), host.u32(self.out_rows), &mut y);
        host.put(self.y, y);
    }
}
