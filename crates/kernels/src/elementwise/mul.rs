//! Product of two tensors, or of a tensor and a row or factor that repeats.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    MUL: "mul",
    wgsl: ["elementwise/mul.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, period: u32 },
    bindings: Bind { a: Read, b: Read, y: Write },
    cpu: cpu_ref::mul,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// The right-hand side of a product.
#[derive(Copy, Clone, Debug)]
pub enum Factor {
    Tensor(Tensor),
    Row(Weight),
}

impl Values for Factor {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        if let Self::Tensor(t) = self {
            f(t);
        }
    }

    fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
        if let Self::Row(w) = self {
            f(w);
        }
    }
}

/// y = a * b.
#[derive(Clone, Debug)]
pub struct Mul {
    pub a: Tensor,
    pub b: Factor,
    pub y: Tensor,
}

parameters! { Mul }
values! { Mul: a, b, y }

/// y = a * b, element by element; both [T, D], f32.
pub fn mul(rec: &mut Recorder<impl From<Mul>>, a: Tensor, b: Tensor) -> Tensor {
    assert_eq!((a.shape.rows, a.shape.width()), (b.shape.rows, b.shape.width()), "mul of unequal shapes");
    push(rec, a, Factor::Tensor(b))
}

/// y = a * b with `b` repeated along every row of `a` [T, D]: \[D\] is a factor per channel, \[1\]
/// is one factor for all. f32.
pub fn mul_row(rec: &mut Recorder<impl From<Mul>>, a: Tensor, b: Weight) -> Tensor {
    assert!(a.shape.width().is_multiple_of(b.cols), "mul_row: a row of another width");
    push(rec, a, Factor::Row(b))
}

fn push(rec: &mut Recorder<impl From<Mul>>, a: Tensor, b: Factor) -> Tensor {
    let y = rec.make(a.shape);
    rec.push(Mul { a, b, y });
    y
}

impl Operation for Mul {
    fn io(&self) -> Io {
        let mut reads = vec![self.a];
        if let Factor::Tensor(b) = self.b {
            reads.push(b);
        }
        Io { reads, writes: vec![self.y] }
    }
}

impl Lowering for Mul {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.a.shape.elements() as u32;
        let (b, period) = match self.b {
            Factor::Tensor(b) => (Arg::Value(b), n),
            Factor::Row(w) => (Arg::from(w), w.cols),
        };
        let grid = Grid::Elements { lead: self.a.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { a: self.a.into(), b, y: self.y.into() }.dispatch(Params { n, period }, grid)]
    }
}

impl Reference for Mul {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        match self.b {
            Factor::Tensor(b) => cpu_ref::mul(host.f32(self.a), host.f32(b), &mut y),
            Factor::Row(w) => cpu_ref::mul(host.f32(self.a), host.vector(w), &mut y),
        }
        host.put(self.y, y);
    }
}
