//! Gaussian error linear unit, tanh form.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    GELU: "gelu",
    wgsl: ["elementwise/gelu.wgsl", "shared/grid.wgsl", "shared/gelu.wgsl"],
    params: Params { n: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::gelu,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
#[derive(Clone, Debug)]
pub struct Gelu {
    pub x: Tensor,
    pub y: Tensor,
}

parameters! { Gelu }
values! { Gelu: x, y }

/// y = gelu(x) in its tanh form, element by element; `x` [T, D], f32 (Hendrycks & Gimpel 2016,
/// arXiv 1606.08415).
pub fn gelu(rec: &mut Recorder<impl From<Gelu>>, x: Tensor) -> Tensor {
    let y = rec.make(x.shape);
    rec.push(Gelu { x, y });
    y
}

impl Operation for Gelu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for Gelu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n }, grid)]
    }
}

impl Reference for Gelu {
    fn reference(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::gelu(x, y));
    }
}
