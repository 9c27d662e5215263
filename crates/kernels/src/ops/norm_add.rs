//! A residual sum with the norm of what is added, the packing of the sum behind it, in one kernel. Made by the planner, never recorded.

use super::add::{Add, Term};
use super::mul::{Factor, Mul};
use super::norm_pack_q8::NormPackQ8;
use super::pack_q8::{BLOCK, PackQ8, pack_q8};
use super::rms_norm::RmsNorm;
use super::scale::{Scale, scale};
use super::{Io, Op, Operation, add, mul_row, rms_norm};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Shape, Tensor, Weight};

kernel! {
    NORM_ADD: "norm_add",
    entry: "norm_add",
    wgsl: ["norm_add.wgsl", "shared/norm_add_end.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, h: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
}

kernel! {
    NORM_ADD_Q8: "norm_add_q8",
    entry: "norm_add",
    wgsl: [
        "norm_add.wgsl", "shared/norm_add_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl",
        "shared/reduce.wgsl"
    ],
    params: PackedParams { dim: u32, rows: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, eps: f32, next_eps: f32, scale: f32 },
    bindings: PackedBind { a: Read, b: Read, w: Read, s: Read, h: Write, u: Read, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-4,
}

/// What is packed beside the sum.
#[derive(Copy, Clone, Debug)]
pub struct Packed {
    pub to: Tensor,
    /// The weight and eps of the norm whose 8 bits these are, or the sum's own without one.
    pub norm: Option<(Option<Weight>, f32)>,
}

/// h = scale factor (a + b / sqrt(mean(b^2) + eps) w), with means over heads of `b`, and its 8 bits.
#[derive(Clone, Debug)]
pub struct NormAdd {
    pub a: Tensor,
    pub b: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub factor: Option<Weight>,
    pub scale: f32,
    pub h: Tensor,
    pub packed: Option<Packed>,
}

/// The sum of two values of which one is a norm, of rows or heads, that nobody else reads: (the norm, the other).
fn normed<'a>(a: Tensor, b: Tensor, makers: &'a Makers<'_>) -> Option<(&'a RmsNorm, Tensor)> {
    let norm = |t: Tensor| match makers.alone(t)? {
        Op::RmsNorm(norm) if norm.x.shape.dim.is_multiple_of(4) => Some(norm),
        _ => None,
    };
    norm(b).map(|norm| (norm, a)).or_else(|| norm(a).map(|norm| (norm, b)))
}

/// A sum that was made here and is not packed yet.
fn unpacked<'a>(t: Tensor, makers: &'a Makers<'_>) -> Option<&'a NormAdd> {
    let Op::NormAdd(sum) = makers.of(t)? else { return None };
    (sum.packed.is_none() && sum.b.shape.heads == 1 && sum.h.shape.width().is_multiple_of(BLOCK)).then_some(sum)
}

/// Sums with a norm; factors of them; and what packs them.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    match op {
        Op::Add(Add { a, b: Term::Tensor(b), y }) => {
            let (norm, a) = normed(*a, *b, makers)?;
            let sum = NormAdd { a, b: norm.x, w: norm.w, eps: norm.eps, factor: None, scale: 1.0, h: *y, packed: None };
            Some(Absorbed { of: vec![norm.y], op: sum.into(), early: false })
        }
        Op::Mul(Mul { a, b: Factor::Row(factor), y }) if factor.cols == 1 => {
            let Op::NormAdd(sum) = makers.alone(*a)? else { return None };
            let plain = sum.factor.is_none() && sum.packed.is_none();
            let op = NormAdd { factor: Some(*factor), h: *y, ..sum.clone() };
            plain.then(|| Absorbed { op: op.into(), of: vec![*a], early: false })
        }
        Op::Scale(Scale { x, s, y }) => {
            let Op::NormAdd(sum) = makers.alone(*x)? else { return None };
            let op = NormAdd { scale: sum.scale * s, h: *y, ..sum.clone() };
            sum.packed.is_none().then(|| Absorbed { op: op.into(), of: vec![*x], early: false })
        }
        Op::PackQ8(PackQ8 { x, packed }) => {
            let sum = unpacked(*x, makers)?;
            let op = NormAdd { packed: Some(Packed { to: *packed, norm: None }), ..sum.clone() };
            Some(Absorbed { op: op.into(), of: vec![*x], early: true })
        }
        Op::NormPackQ8(NormPackQ8 { a, sum: None, w, eps, packed }) => {
            let sum = unpacked(*a, makers)?;
            let op = NormAdd { packed: Some(Packed { to: *packed, norm: Some((*w, *eps)) }), ..sum.clone() };
            Some(Absorbed { op: op.into(), of: vec![*a], early: true })
        }
        Op::NormPackQ8(NormPackQ8 { a, sum: Some((b, h)), w, eps, packed }) => {
            let (norm, a) = normed(*a, *b, makers).filter(|(norm, _)| norm.x.shape.heads == 1)?;
            let packed = Some(Packed { to: *packed, norm: Some((*w, *eps)) });
            let sum = NormAdd { a, b: norm.x, w: norm.w, eps: norm.eps, factor: None, scale: 1.0, h: *h, packed };
            Some(Absorbed { of: vec![norm.y], op: sum.into(), early: false })
        }
        _ => None,
    }
}

/// What kernels are told of a sum and its packing.
pub(super) struct Flags {
    pub has_weight: u32,
    pub has_factor: u32,
    pub pack: u32,
    pub has_u: u32,
    pub u: Option<Weight>,
    pub next_eps: f32,
}

impl NormAdd {
    pub(super) fn flags(&self) -> Flags {
        let norm = self.packed.and_then(|packed| packed.norm);
        let (u, next_eps) = norm.map_or((None, 0.0), |(u, eps)| (u, eps));
        Flags {
            has_weight: u32::from(self.w.is_some()),
            has_factor: u32::from(self.factor.is_some()),
            pack: u32::from(self.packed.is_some()) + u32::from(norm.is_some()),
            has_u: u32::from(u.is_some()),
            u,
            next_eps,
        }
    }
}

impl Operation for NormAdd {
    fn io(&self) -> Io {
        Io { reads: vec![self.a, self.b], writes: std::iter::once(self.h).chain(self.packed.map(|packed| packed.to)).collect() }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Shape { dim, rows, heads, .. } = self.b.shape;
        let rows = rows * heads;
        let Flags { has_weight, has_factor, pack, has_u, u, next_eps } = self.flags();
        let [a, b, h] = [self.a, self.b, self.h].map(Arg::from);
        let (w, s, eps, scale) = (Arg::from(self.w), Arg::from(self.factor), self.eps, self.scale);
        let grid = Grid::PerRow { lead: self.h.shape, per_row: heads };
        vec![match self.packed {
            None => {
                let params = Params { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale };
                Bind { a, b, w, s, h }.dispatch(params, grid)
            }
            Some(Packed { to, .. }) => {
                let params = PackedParams { dim, rows, has_weight, has_factor, pack, has_u, eps, next_eps, scale };
                PackedBind { a, b, w, s, h, u: u.into(), packed: to.into() }.dispatch(params, grid)
            }
        }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// A sum with a norm of rows of `heads` heads, with and without a weight and a factor; of rows beside which epsilon counts, and of some whose last
/// elements do most.
pub(super) fn sum(case: &mut Case, g: &mut Gen, dim: u32, heads: u32) -> Tensor {
    let a = case.tensor(g, dim);
    let b = match g.pick(&[0, 1, 2, 2]) {
        0 => case.squared(g, dim),
        1 => case.uniform(g, dim, 1e-3),
        _ => case.rising(g, dim),
    };
    let b = b.heads(heads);
    let w = g.coin().then(|| case.vector(g, dim / heads));
    let b = rms_norm(&mut case.rec, b, w, g.pick(&[1e-6_f32, 1e-5])).flat();
    let h = if g.coin() { add(&mut case.rec, a, b) } else { add(&mut case.rec, b, a) };
    let factor = g.coin().then(|| case.vector(g, 1));
    factor.map_or(h, |s| mul_row(&mut case.rec, h, s))
}

/// The parts as a model records them: with and without factors; read as floats (of heads, too), in 8 bits, and normed in 8 bits.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 32 * g.pick(&[1, 3, 33, 65, 97, 128, 129]));
    let mut case = Case::new(rows);
    let kind = g.pick(&[0, 1, 2]);
    let heads = if kind == 0 { g.pick(&[1, 2, 8]) } else { 1 };
    let h = sum(&mut case, g, dim, heads);
    let h = if g.coin() { scale(&mut case.rec, h, g.pick(&[-0.37, 2.0])) } else { h };
    case.expect(h);
    if kind == 0 {
        return case;
    }
    let u = g.coin().then(|| case.vector(g, dim));
    let x = if kind == 2 { rms_norm(&mut case.rec, h, u, 1e-6) } else { h };
    let packed = pack_q8(&mut case.rec, x);
    case.expect_as(packed, Compare::Packed { k: dim });
    case
}
