//! Rotary position embedding from rows of cosines and sines.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ROPE: "rope",
    wgsl: ["norm/rope.wgsl", "shared/grid.wgsl"],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32 },
    bindings: Bind { x: Read, table: Read, y: Write },
    cpu: cpu_ref::rope,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = x rotated by the angles of `table`.
#[derive(Clone, Debug)]
pub struct Rope {
    pub x: Tensor,
    pub table: Tensor,
    pub y: Tensor,
}

parameters! { Rope }
values! { Rope: x, table, y }

/// Rotates the pairs (i, i + dim / 2) of every head of `x` [T, N, H] by the angles of `rows` [T,
/// dim / 2, 2] ([`Recorder::rope_rows`]); elements past dim are copied. f32.
pub fn rope(rec: &mut Recorder<impl From<Rope>>, x: Tensor, rows: Tensor) -> Tensor {
    assert!(
        rows.shape.dim <= x.shape.dim && rows.shape.dim.is_multiple_of(2),
        "rope of {} in heads of {}",
        rows.shape.dim,
        x.shape.dim
    );
    let y = rec.make(x.shape);
    rec.push(Rope { x, table: rows, y });
    y
}

impl Operation for Rope {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.table], writes: vec![self.y] }
    }
}

impl Lowering for Rope {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { heads: shape.heads, head_dim: shape.dim, dim: self.table.shape.dim, rows: shape.rows };
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), table: self.table.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for Rope {
    fn reference(&self, host: &mut Host<'_>) {
        let (heads, dim) = (self.x.shape.heads as usize, self.x.shape.dim as usize);
        let mut y = host.take(self.y);
        cpu_ref::rope(host.f32(self.x), host.f32(self.table), heads, dim, &mut y);
        host.put(self.y, y);
    }
}
