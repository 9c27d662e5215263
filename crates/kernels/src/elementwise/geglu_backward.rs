//! Derivatives of the gated activation of Gemma.

use super::geglu::Geglu;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GEGLU_BACKWARD: "geglu_backward",
    wgsl: ["elementwise/geglu_backward.wgsl", "shared/grid.wgsl", "shared/gelu_slope.wgsl"],
    params: Params { n: u32, dim: u32, up_dim: u32, start: u32 },
    bindings: Bind { gate: Read, up: Read, dy: Read, dgate: Write, dup: Write },
    cpu: cpu_ref::geglu_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// dgate, dup = the derivatives of gelu(gate) * up[.., start..].
#[derive(Clone, Debug)]
pub struct GegluBackward {
    pub gate: Tensor,
    pub up: Tensor,
    pub start: u32,
    pub dy: Tensor,
    pub dgate: Tensor,
    pub dup: Tensor,
}

parameters! { GegluBackward }

/// The derivatives of `glu` by its gate and by the columns of `up` that it reads, from the
/// derivative `dy` by its result; all [T, F], f32.
pub fn geglu_backward(rec: &mut Recorder<impl From<GegluBackward>>, glu: &Geglu, dy: Tensor) -> [Tensor; 2] {
    let &Geglu { gate, up, start, .. } = glu;
    assert_eq!(
        (dy.shape.rows, dy.shape.width()),
        (gate.shape.rows, gate.shape.width()),
        "geglu_backward of unequal shapes"
    );
    let [dgate, dup] = [rec.make(gate.shape), rec.make(gate.shape)];
    rec.push(GegluBackward { gate, up, start, dy, dgate, dup });
    [dgate, dup]
}

impl Operation for GegluBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up, self.dy], writes: vec![self.dgate, self.dup] }
    }
}

impl Lowering for GegluBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let (shape, up_dim) = (self.gate.shape, self.up.shape.width());
        let params = Params { n: shape.elements() as u32, dim: shape.width(), up_dim, start: self.start };
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        let [gate, up, dy, dgate, dup] = [self.gate, self.up, self.dy, self.dgate, self.dup].map(Into::into);
        vec![Bind { gate, up, dy, dgate, dup }.dispatch(params, grid)]
    }
}

impl Reference for GegluBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let (mut dgate, mut dup) = (host.take(self.dgate), host.take(self.dup));
        let (dim, up_dim, start) =
            (self.gate.shape.width() as usize, self.up.shape.width() as usize, self.start as usize);
        let up: Vec<f32> =
            host.f32(self.up).chunks_exact(up_dim).flat_map(|row| row[start..start + dim].iter().copied()).collect();
        cpu_ref::geglu_backward(host.f32(self.gate), &up, host.f32(self.dy), &mut dgate, &mut dup);
        host.put(self.dgate, dgate);
        host.put(self.dup, dup);
    }
}
