//! Index of the largest element of each row.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ARGMAX: "argmax",
    wgsl: ["sampling/argmax.wgsl", "shared/grid.wgsl", "shared/order.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::argmax,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 2048 },
}

/// y = the first index of the largest element.
#[derive(Clone, Debug)]
pub struct Argmax {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { Argmax }
values! { Argmax: x, y }

/// The first index of the largest element of every row of `x` [R, V] f32. NaN is skipped; a row of
/// NaN alone gives 0. Returns [R, 1], u32.
pub fn argmax(rec: &mut Recorder<impl From<Argmax>>, x: Tensor) -> Tensor {
    let x = x.flat();
    let y = rec.make_of(Element::U32, Shape { dim: 1, ..x.shape });
    rec.push(Argmax { x, y });
    y
}

impl Operation for Argmax {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Argmax {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.x.shape.dim, rows: self.x.shape.rows };
        let grid = Grid::PerRow { lead: self.x.shape, per_row: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for Argmax {
    fn reference(&self, host: &mut Host<'_>) {
        let rows = host.f32(self.x).chunks_exact(self.x.shape.dim as usize);
        let y = rows.map(cpu_ref::argmax).collect();
        host.put_u32(self.y, y);
    }
}
