//! A norm whose readers want 8 bits, with the residual sum before it. Made by the planner, never recorded.

use super::pack_q8::pack_q8;
use super::{Io, Op, Operation, add, rms_norm};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Tensor, Weight};

kernel! {
    NORM_PACK_Q8: "norm_pack_q8",
    entry: "norm_pack_q8",
    wgsl: ["norm_pack_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"],
    params: Params { dim: u32, rows: u32, has_add: u32, has_weight: u32, eps: f32 },
    bindings: Bind { a: Read, b: Read, w: Read, h: Write, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-4,
}

const WG: u32 = 64;

/// h = a + b; packed = 8 bits of h w, whose readers divide it by sqrt(mean(h^2) + eps). Without a sum, of `a`.
#[derive(Clone, Debug)]
pub struct NormPackQ8 {
    pub a: Tensor,
    /// (b, h)
    pub sum: Option<(Tensor, Tensor)>,
    pub w: Option<Weight>,
    pub eps: f32,
    pub packed: Tensor,
}

/// Packing of what a norm of whole rows made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackQ8(pack) = op else { return None };
    let (a, sum, w, eps) = match makers.alone(pack.x)? {
        Op::RmsNorm(norm) if norm.x.shape.heads == 1 => (norm.x, None, norm.w, norm.eps),
        Op::AddRmsNorm(norm) => (norm.a, Some((norm.b, norm.h)), norm.w, norm.eps),
        _ => return None,
    };
    let op = NormPackQ8 { a, sum, w, eps, packed: pack.packed }.into();
    Some(Absorbed { op, of: vec![pack.x], early: true })
}

impl Operation for NormPackQ8 {
    fn io(&self) -> Io {
        let (b, h) = self.sum.unzip();
        Io { reads: std::iter::once(self.a).chain(b).collect(), writes: h.into_iter().chain([self.packed]).collect() }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.a.shape;
        let params = Params {
            dim: shape.width(),
            rows: shape.rows,
            has_add: u32::from(self.sum.is_some()),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let (b, h) = self.sum.map_or((Arg::None, Arg::Spare), |(b, h)| (b.into(), h.into()));
        let bind = Bind { a: self.a.into(), b, w: Arg::from(self.w), h, packed: self.packed.into() };
        vec![bind.dispatch(params, Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, with and without the sum; rows of few blocks and of more than threads, of any size.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 32 * g.pick(&[1, 3, 64, 127, 128, 129]));
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let a = case.squared(g, dim);
    let h = if g.coin() {
        let b = case.tensor(g, dim);
        let h = add(&mut case.rec, a, b);
        case.expect(h);
        h
    } else {
        a
    };
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    let packed = pack_q8(&mut case.rec, x);
    case.expect_as(packed, Compare::Packed { k: dim });
    case
}
