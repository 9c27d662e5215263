//! The gated activation of Gemma: gelu(gate) times up.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GEGLU: "geglu",
    wgsl: ["elementwise/geglu.wgsl", "shared/grid.wgsl", "shared/gelu.wgsl"],
    params: Params { n: u32, dim: u32, up_dim: u32, start: u32 },
    bindings: Bind { gate: Read, up: Read, y: Write },
    cpu: cpu_ref::geglu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = gelu(gate) * up[.., start..], tanh form.
#[derive(Clone, Debug)]
pub struct Geglu {
    pub gate: Tensor,
    pub up: Tensor,
    pub start: u32,
    pub y: Tensor,
}

parameters! { Geglu: start }
values! { Geglu: gate, up, y }

/// y = gelu(gate) * up with the tanh form of GELU, element by element; all [T, F], f32 (Shazeer
/// 2020, arXiv 2002.05202).
pub fn geglu(rec: &mut Recorder<impl From<Geglu>>, gate: Tensor, up: Tensor) -> Tensor {
    assert_eq!(gate.shape, up.shape, "geglu of unequal shapes");
    geglu_columns(rec, gate, up, 0)
}

/// y = gelu(gate) * up with the columns `start..start + F` of a wider `up` [T, U]; `gate` [T, F].
pub fn geglu_columns(rec: &mut Recorder<impl From<Geglu>>, gate: Tensor, up: Tensor, start: u32) -> Tensor {
    let fits = gate.shape.rows == up.shape.rows && start + gate.shape.width() <= up.shape.width();
    assert!(fits, "geglu of {:?} with columns of {:?} from {start} on", gate.shape, up.shape);
    let y = rec.make(gate.shape);
    rec.push(Geglu { gate, up, start, y });
    y
}

impl Operation for Geglu {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], writes: vec![self.y] }
    }
}

impl Lowering for Geglu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let (dim, up_dim) = (self.y.shape.width(), self.up.shape.width());
        let params = Params { n: self.y.shape.elements() as u32, dim, up_dim, start: self.start };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { gate: self.gate.into(), up: self.up.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for Geglu {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let (dim, up_dim, start) = (self.y.shape.width() as usize, self.up.shape.width() as usize, self.start as usize);
        let up = host.f32(self.up).chunks_exact(up_dim).map(|row| &row[start..start + dim]);
        for ((gate, up), y) in host.f32(self.gate).chunks_exact(dim).zip(up).zip(y.chunks_exact_mut(dim)) {
            cpu_ref::geglu(gate, up, y);
        }
        host.put(self.y, y);
    }
}
