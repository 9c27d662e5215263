//! The residual sum and the norm that follows it, in one kernel. Made by the planner, never recorded.

use super::{Io, Op, Operation, add, add::Term, rms_norm};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, Uses};
use crate::record::Node;
use crate::tensor::{Tensor, Weight};

kernel! {
    ADD_RMS_NORM: "add_rms_norm",
    entry: "add_rms_norm",
    wgsl: ["add_rms_norm.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, x: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
}

/// h = a + b; x = h / sqrt(mean(h^2) + eps) * w. Both are written, so other readers and taps of h do not end it.
#[derive(Clone, Debug)]
pub struct AddRmsNorm {
    pub a: Tensor,
    pub b: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub h: Tensor,
    pub x: Tensor,
}

/// add(a, b) directly before a norm of whole rows of its result.
pub(crate) fn pattern(nodes: &[Node], _: &Uses, _: &Caps) -> Option<(usize, Op)> {
    let [Node { op: Op::Add(sum), .. }, Node { op: Op::RmsNorm(norm), .. }, ..] = nodes else { return None };
    let Term::Tensor(b) = sum.b else { return None };
    (norm.x == sum.y && norm.x.shape.heads == 1).then(|| {
        let fused = AddRmsNorm { a: sum.a, b, w: norm.w, eps: norm.eps, h: sum.y, x: norm.y };
        (2, fused.into())
    })
}

impl Operation for AddRmsNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.a, self.b], writes: vec![self.h, self.x] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { dim: shape.dim, rows: shape.rows, has_weight: u32::from(self.w.is_some()), eps: self.eps };
        let bind = Bind { a: self.a.into(), b: self.b.into(), w: Arg::from(self.w), h: self.h.into(), x: self.x.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The two parts as a model records them; the plan must fuse them and give both results.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let (a, b) = (case.squared(g, dim), case.tensor(g, dim));
    let h = add(&mut case.rec, a, b);
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    case.expect(h);
    case.expect(x);
    case
}
