//! Up to three products of one normed row with the packing of that row, in one kernel. Made by the planner, never recorded.

use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::norm_add_matmul_vec::MOST_ROWS;
use super::{Io, Op, Operation, Work, add_bias, pack_q8, rms_norm};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower};
use crate::tensor::{Counts, Tensor, Weight};

kernel! {
    NORM_PACK_MATMUL_VEC: "norm_pack_matmul_vec",
    entry: "norm_pack_matmul_vec",
    wgsl: [
        "norm_pack_matmul_vec.wgsl", "shared/acts_norm.wgsl", "shared/acts_own.wgsl", "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl",
        "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, has_norm: u32, has_weight: u32, exchange: u32, eps: f32 },
    bindings: Bind {
        h: Read, u: Read, wa: Units, wb: Units, wc: Units, bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-4,
}

/// Columns up to which it is faster to pack a row in every workgroup than once: three products behind a sum gain 1.7 us of 32 at 1024 columns
/// and 2.2 of 36 at 1536, and lose at 4096 (NVIDIA H200).
const MOST_COLS: u32 = 1536;
/// Weight rows per workgroup.
const ROWS: u32 = 16;

/// A row and its norm, if it has any, whose factor is left to those who read h u in 8 bits.
#[derive(Clone, Debug)]
pub struct Normed {
    pub h: Tensor,
    pub u: Option<Weight>,
    pub eps: Option<f32>,
}

/// y = w norm(h) u for every product.
#[derive(Clone, Debug)]
pub struct NormPackMatmulVec {
    pub row: Normed,
    pub products: Vec<Matmul>,
}

/// Products of a packed row that may pack it; a lone one, of a row that has no norm.
pub(crate) fn packing(row: &Normed, reader: &Op, caps: &Caps) -> Option<Op> {
    let products = match reader {
        Op::MatmulGroup(group) => group.products.clone(),
        Op::Matmul(product) if row.eps.is_none() && joins(product, caps) && product.w.rows <= MOST_ROWS => vec![product.clone()],
        _ => return None,
    };
    let fits = row.h.shape.rows == 1 && row.h.shape.width() <= MOST_COLS && NORM_PACK_MATMUL_VEC.fits(caps);
    fits.then(|| NormPackMatmulVec { row: row.clone(), products }.into())
}

impl Operation for NormPackMatmulVec {
    fn io(&self) -> Io {
        Io { reads: vec![self.row.h], writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let of = |n: usize| self.products.get(n);
        let rows = |n: usize| of(n).map_or(0, |product| product.w.rows);
        let weight = |n: usize| of(n).unwrap_or(&self.products[0]).w.into();
        let bias = |n: usize| of(n).and_then(|product| product.bias).into();
        let y = |n: usize| of(n).map_or(Arg::Spare, |product| product.y.into());
        let params = Params {
            k: self.products[0].w.cols,
            rows_a: rows(0),
            rows_b: rows(1),
            rows_c: rows(2),
            biases: self.products.iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum(),
            has_norm: u32::from(self.row.eps.is_some()),
            has_weight: u32::from(self.row.u.is_some()),
            exchange: cx.caps.subgroup_size,
            eps: self.row.eps.unwrap_or(0.0),
        };
        let bind = Bind {
            h: self.row.h.into(),
            u: self.row.u.into(),
            wa: weight(0),
            wb: weight(1),
            wc: weight(2),
            bias_a: bias(0),
            bias_b: bias(1),
            bias_c: bias(2),
            ya: y(0),
            yb: y(1),
            yc: y(2),
        };
        let per_row = (0..self.products.len()).map(|n| rows(n).div_ceil(ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: self.row.h.shape, per_row })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// A row that is normed, with and without a weight, or not, and which of both.
pub(super) fn normed(case: &mut Case, g: &mut Gen, cols: u32) -> (Tensor, bool) {
    if g.pick(&[false, false, true]) {
        return (case.tensor(g, cols), false);
    }
    let h = case.squared(g, cols);
    let u = g.coin().then(|| case.vector(g, cols));
    (rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])), true)
}

/// Two and three products of a row that is normed or not, one of a row that is not, of formats of their own, odd and even numbers of rows on both
/// sides of a workgroup's, with and without biases.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let cols = 256 * g.pick(&[1, 2, 5, 6]);
    let mut case = Case::new(1);
    let (x, normed) = normed(&mut case, g, cols);
    let packed = pack_q8(&mut case.rec, x);
    for n in 0..if normed { g.pick(&[2, 3]) } else { g.pick(&[1, 2, 3]) } {
        let ty = if n == 0 { ty } else { g.format_with(|f| f.units.is_some()) };
        let rows = g.pick(&[31, 32, 33, 64, 97]);
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
