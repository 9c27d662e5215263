//! A product of one row, the residual sum with it, the sum's norm and packing in one kernel. Made by the planner, never recorded.

use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::norm_pack_q8::NormPackQ8;
use super::pack_q8::{BLOCK, activations};
use super::{Io, Op, Operation, Work, add, pack_q8, rms_norm};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::tensor::{Counts, Tensor, Weight};

kernel! {
    MATMUL_VEC_NORM: "matmul_vec_norm",
    entry: "matmul_vec_norm",
    wgsl: [
        "matmul_vec_norm.wgsl", "shared/pairs.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind { x: Read, w: Units, a: Read, u: Read, h: Write, packed: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-4,
}

kernel! {
    MATMUL_VEC_NORM_LONG: "matmul_vec_norm_long" = MATMUL_VEC_NORM with
    wgsl: [
        "matmul_vec_norm.wgsl", "shared/pairs_long.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// Columns from which on twice as many threads share a row: products of 4096 and 12288 columns take 7% less in Q4_K and 9% in Q6_K, of 1536 they
/// take 13% more (NVIDIA H200).
const LONG: u32 = 4096;

/// h = a + product; packed = 8 bits of h u, as [`NormPackQ8`] has it.
#[derive(Clone, Debug)]
pub struct MatmulVecNorm {
    pub product: Matmul,
    pub a: Tensor,
    pub h: Tensor,
    pub u: Option<Weight>,
    pub eps: f32,
    pub packed: Tensor,
}

/// A norm of a sum with a product that nobody else reads.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::NormPackQ8(NormPackQ8 { a, sum: Some((b, h)), w, eps, packed }) = op else { return None };
    let product = |t: Tensor| match makers.alone(t)? {
        Op::Matmul(product) if product.x.shape.rows == 1 && joins(product, makers.caps) && product.bias.is_none() => Some(product.clone()),
        _ => None,
    };
    let (product, a) = product(*b).map(|product| (product, *a)).or_else(|| product(*a).map(|product| (product, *b)))?;
    let of = product.w;
    if !MATMUL_VEC_NORM.fits(makers.caps) || !of.rows.is_multiple_of(BLOCK) || of.cols > makers.caps.table.norm_columns.saturating_mul(of.rows) {
        return None;
    }
    let of = vec![product.y];
    Some(Absorbed { op: MatmulVecNorm { product, a, h: *h, u: *w, eps: *eps, packed: *packed }.into(), of, early: false })
}

impl Operation for MatmulVecNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.x, self.a], writes: vec![self.h, self.packed] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Matmul { x, w, .. } = self.product;
        let params =
            Params { k: w.cols, n: w.rows, has_weight: u32::from(self.u.is_some()), exchange: cx.caps.subgroup_size, eps: self.eps };
        let (h, packed) = (self.h.into(), self.packed.into());
        let bind = Bind { x: x.into(), w: w.into(), a: self.a.into(), u: Arg::from(self.u), h, packed };
        let dispatch = bind.dispatch(params, Grid::PerRow { lead: x.shape, per_row: w.rows / BLOCK });
        let long = w.cols >= LONG && MATMUL_VEC_NORM_LONG.fits(cx.caps);
        vec![if long { Dispatch { row: &MATMUL_VEC_NORM_LONG, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, with and without a weight of the norm and a norm before them whose factor is left to
/// them; sums so small that eps counts.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let (cols, n) = if g.pick(&[false, false, true]) { (LONG + 256 * g.pick(&[0, 1]), BLOCK * 33) } else { (256 * g.pick(&[1, 2]), BLOCK * g.pick(&[4, 5, 17])) };
    let mut case = Case::new(1);
    let (normed, small) = (g.coin(), g.coin());
    let packed = if small && !normed {
        let x = case.uniform(g, cols, 1e-4);
        pack_q8(&mut case.rec, x)
    } else {
        activations(&mut case, g, cols, normed)
    };
    let w = case.weight(g, ty, n, cols);
    let a = if small { case.uniform(g, n, 1e-4) } else { case.tensor(g, n) };
    let y = matmul_q8(&mut case.rec, w, packed);
    let h = if g.coin() { add(&mut case.rec, a, y) } else { add(&mut case.rec, y, a) };
    case.expect(h);
    let u = g.coin().then(|| case.vector(g, n));
    let x = rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5]));
    let packed = pack_q8(&mut case.rec, x);
    case.expect_as(packed, Compare::Packed { k: n });
    case
}
