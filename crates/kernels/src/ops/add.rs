//! Sum of two tensors, or of a tensor and a row that repeats.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Tensor, Weight};

kernel! {
    ADD: "add",
    entry: "add",
    wgsl: ["add.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, period: u32 },
    bindings: Bind { a: Read, b: Read, y: Write },
    cpu: cpu_ref::add,
    nmse: 1e-12,
}

/// The right-hand side of a sum.
#[derive(Copy, Clone, Debug)]
pub enum Term {
    Tensor(Tensor),
    Row(Weight),
}

/// y = a + b.
#[derive(Clone, Debug)]
pub struct Add {
    pub a: Tensor,
    pub b: Term,
    pub y: Tensor,
}

/// y = a + b, element by element; both [T, D], f32.
pub fn add(rec: &mut Recorder, a: Tensor, b: Tensor) -> Tensor {
    assert_eq!((a.shape.rows, a.shape.width()), (b.shape.rows, b.shape.width()), "add of unequal shapes");
    push(rec, a, Term::Tensor(b))
}

/// y = a + b with the bias `b` \[D\] added to every row of `a` [T, D].
pub fn add_bias(rec: &mut Recorder, a: Tensor, b: Weight) -> Tensor {
    assert_eq!(a.shape.width(), b.cols, "add_bias: a row of another width");
    push(rec, a, Term::Row(b))
}

fn push(rec: &mut Recorder, a: Tensor, b: Term) -> Tensor {
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

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let n = self.a.shape.elements() as u32;
        let (b, period) = match self.b {
            Term::Tensor(b) => (Arg::Value(b), n),
            Term::Row(w) => (Arg::from(w), w.cols),
        };
        let grid = Grid::Elements { lead: self.a.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { a: self.a.into(), b, y: self.y.into() }.dispatch(Params { n, period }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        match self.b {
            Term::Tensor(b) => cpu_ref::add(host.f32(self.a), host.f32(b), &mut y),
            Term::Row(w) => cpu_ref::add(host.f32(self.a), host.vector(w), &mut y),
        }
        host.put(self.y, y);
    }
}

/// Sums of tensors and of repeating rows at the workgroup's edges.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let a = case.tensor(g, dim);
    let y = if g.coin() {
        let b = case.tensor(g, dim);
        add(&mut case.rec, a, b)
    } else {
        let b = case.vector(g, dim);
        add_bias(&mut case.rec, a, b)
    };
    case.expect(y);
    case
}
