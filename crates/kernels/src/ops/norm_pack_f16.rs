//! A norm whose readers want f16, with the residual sum before it. Made by the planner, never recorded.

use super::pack_f16::{PackF16, pack_f16, pitches};
use super::{Io, Op, Operation, add, rms_norm};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Tensor, Weight};

kernel! {
    NORM_PACK_F16: "norm_pack_f16",
    entry: "norm_pack_f16",
    wgsl: ["norm_pack_f16.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_add: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, scales: Write, halves: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-6,
}

/// h = a + b; scales, halves = f16 of h / sqrt(mean(h^2) + eps) * w. Without a sum, of `a`.
#[derive(Clone, Debug)]
pub struct NormPackF16 {
    pub a: Tensor,
    /// (b, h)
    pub sum: Option<(Tensor, Tensor)>,
    pub w: Option<Weight>,
    pub eps: f32,
    pub scales: Tensor,
    pub halves: Tensor,
    /// As [`PackF16`] has it.
    pub slab: u32,
}

/// Packing of what a norm of whole rows made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackF16(pack @ PackF16 { scaled: true, .. }) = op else { return None };
    let (a, sum, w, eps) = match makers.alone(pack.x)? {
        Op::RmsNorm(norm) if norm.x.shape.heads == 1 => (norm.x, None, norm.w, norm.eps),
        Op::AddRmsNorm(norm) => (norm.a, Some((norm.b, norm.h)), norm.w, norm.eps),
        _ => return None,
    };
    if !NORM_PACK_F16.fits(makers.caps) {
        return None;
    }
    let op = NormPackF16 { a, sum, w, eps, scales: pack.scales, halves: pack.halves, slab: pack.slab }.into();
    Some(Absorbed { op, of: vec![pack.x], early: true })
}

impl Operation for NormPackF16 {
    fn io(&self) -> Io {
        let (b, h) = self.sum.unzip();
        let writes = h.into_iter().chain([self.scales, self.halves]);
        Io { reads: std::iter::once(self.a).chain(b).collect(), writes: writes.collect() }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.a.shape;
        let (row_pitch, slab_pitch) = pitches(shape, self.slab);
        let params = Params {
            dim: shape.width(),
            rows: shape.rows,
            row_pitch,
            slab_pitch,
            has_add: u32::from(self.sum.is_some()),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let (b, h) = self.sum.map_or((Arg::None, Arg::Spare), |(b, h)| (b.into(), h.into()));
        let bind = Bind { a: self.a.into(), b, w: Arg::from(self.w), h, scales: self.scales.into(), halves: self.halves.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, with and without the sum and the weight; rows of few quads and of more than threads, of any size.
pub fn case(g: &mut Gen) -> Case {
    // Rows of one to two quads per thread, of two, and somewhat longer ones take ways of their own.
    let (rows, usual) = (g.small(), g.dim());
    let dim = 4 * g.pick(&[usual, usual, usual, usual, usual, 640, 1024, 1281]);
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let a = if g.coin() { case.squared(g, dim) } else { case.alone(g, dim) };
    let h = if g.coin() {
        let b = case.tensor(g, dim);
        let h = add(&mut case.rec, a, b);
        case.expect(h);
        h
    } else {
        a
    };
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    let (scales, halves) = pack_f16(&mut case.rec, x);
    case.expect_as(scales, Compare::Exact);
    case.expect_as(halves, Compare::Halves);
    case
}
