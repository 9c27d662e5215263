//! Sum of two tensors, or of a tensor and a row that repeats.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};

kernel! {
    ADD: "add",
    wgsl: ["elementwise/add.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, period: u32 },
    bindings: Bind { a: Read, b: Read, y: Write },
    cpu: cpu_ref::add,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// The right-hand side of a sum.
#[derive(Copy, Clone, Debug)]
pub enum Term {
    Tensor(Tensor),
    Row(Weight),
}

impl Values for Term {
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

/// y = a + b.
#[derive(Clone, Debug)]
pub struct Add {
    pub a: Tensor,
    pub b: Term,
    pub y: Tensor,
}

parameters! { Add }
values! { Add: a, b, y }

/// y = a + b, element by element; both are [T, D], f32.
pub fn add(rec: &mut Recorder<impl From<Add>>, a: Tensor, b: Tensor) -> Tensor {
    assert_eq!((a.shape.rows, a.shape.width()), (b.shape.rows, b.shape.width()), "add of unequal shapes");
    push(rec, a, Term::Tensor(b))
}

/// y = a + b with the bias `b` \[D\] added to every row of `a` [T, D].
pub fn add_bias(rec: &mut Recorder<impl From<Add>>, a: Tensor, b: Weight) -> Tensor {
    assert_eq!(a.shape.width(), b.cols, "add_bias: a row of another width");
    push(rec, a, Term::Row(b))
}

fn push(rec: &mut Recorder<impl From<Add>>, a: Tensor, b: Term) -> Tensor {
    let y = rec.make(a.shape);
    rec.push(Add { a, b, y });
    y
}

impl Operation for Add {
    fn io(&self) -> Io {
        let mut reads = vec![self.a];
        if let Term::Tensor(b) = self.b {
            reads.push(b);
        }
        Io { reads, writes: vec![self.y] }
    }
}

impl Lowering for Add {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.a.shape.elements() as u32;
        let (b, period) = match self.b {
            Term::Tensor(b) => (Arg::Value(b), n),
            Term::Row(w) => (Arg::from(w), w.cols),
        };
        let grid = Grid::Elements { lead: self.a.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { a: self.a.into(), b, y: self.y.into() }.dispatch(Params { n, period }, grid)]
    }
}

impl Reference for Add {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        match self.b {
            Term::Tensor(b) => cpu_ref::add(host.f32(self.a), host.f32(b), &mut y),
            Term::Row(w) => cpu_ref::add(host.f32(self.a), host.vector(w), &mut y),
        }
        host.put(self.y, y);
    }
}
