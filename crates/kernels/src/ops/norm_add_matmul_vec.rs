//! Up to three products of one row with the residual sum, norm and packing that make the row, in one kernel. Made by the planner, never recorded.

use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::norm_add::{NormAdd, sum};
use super::{Io, Op, Operation, Work};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower};
use crate::tensor::{Counts, Tensor};

kernel! {
    NORM_ADD_MATMUL_VEC: "norm_add_matmul_vec",
    entry: "norm_add_matmul_vec",
    wgsl: [
        "norm_add_matmul_vec.wgsl", "shared/acts_norm_add.wgsl", "shared/acts_norm_add_eights.wgsl", "shared/acts_own.wgsl",
        "shared/norm_share.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params {
        k: u32, rows_a: u32, rows_b: u32, rows_c: u32, has_weight: u32, has_factor: u32, pack: u32, has_u: u32, exchange: u32, eps: f32, next_eps: f32
    },
    bindings: Bind {
        a: Read, b: Read, w: Read, s: Read, u: Read, h: Write, wa: Units, wb: Units, wc: Units, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-4,
}

/// Columns that a workgroup has room for.
pub(super) const MOST_COLS: u32 = 2560;
/// Rows of weights up to which it is faster to make a row in every workgroup than once.
pub(super) const MOST_ROWS: u32 = 32768;
/// Weight rows per workgroup.
const ROWS: u32 = 16;

/// y = w x for every product, with x the packed sum, which no other operation reads.
#[derive(Clone, Debug)]
pub struct NormAddMatmulVec {
    pub sum: NormAdd,
    pub products: Vec<Matmul>,
}

/// Whether all workgroups of products of `rows` rows may make this sum.
pub(super) fn makes(sum: &NormAdd, rows: u32) -> bool {
    let shape = sum.h.shape;
    sum.scale == 1.0 && shape.rows == 1 && shape.width() <= MOST_COLS && rows <= MOST_ROWS
}

/// Products that read a packed sum.
pub(crate) fn inline(maker: &Op, reader: &Op, caps: &Caps) -> Option<Op> {
    let Op::NormAdd(sum) = maker else { return None };
    let products = match reader {
        Op::Matmul(product) => vec![product.clone()],
        Op::MatmulGroup(group) => group.products.clone(),
        _ => return None,
    };
    let rows = products.iter().map(|product| product.w.rows).sum();
    let whole = products.iter().all(|product| product.bias.is_none() && joins(product, caps));
    let fits = whole && makes(sum, rows) && NORM_ADD_MATMUL_VEC.fits(caps);
    fits.then(|| NormAddMatmulVec { sum: sum.clone(), products }.into())
}

impl Operation for NormAddMatmulVec {
    fn io(&self) -> Io {
        let made = self.products.iter().map(|product| product.y);
        Io { reads: vec![self.sum.a, self.sum.b], writes: std::iter::once(self.sum.h).chain(made).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let first = &self.products[0];
        let of = |n: usize| self.products.get(n);
        let rows = |n: usize| of(n).map_or(0, |product| product.w.rows);
        let y = |n: usize| of(n).map_or(Arg::Spare, |product| product.y.into());
        let row = self.sum.flags();
        let params = Params {
            k: first.w.cols,
            rows_a: rows(0),
            rows_b: rows(1),
            rows_c: rows(2),
            has_weight: row.has_weight,
            has_factor: row.has_factor,
            pack: row.pack,
            has_u: row.has_u,
            exchange: cx.caps.subgroup_size,
            eps: self.sum.eps,
            next_eps: row.next_eps,
        };
        let bind = Bind {
            a: self.sum.a.into(),
            b: self.sum.b.into(),
            w: self.sum.w.into(),
            s: self.sum.factor.into(),
            u: row.u.into(),
            h: self.sum.h.into(),
            wa: first.w.into(),
            wb: of(1).unwrap_or(first).w.into(),
            wc: of(2).unwrap_or(first).w.into(),
            ya: y(0),
            yb: y(1),
            yc: y(2),
        };
        let per_row = (0..self.products.len()).map(|n| rows(n).div_ceil(ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: self.sum.h.shape, per_row })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// A row that products of this kernel make: a packed sum, normed or not, of `cols` columns, expected as floats too.
pub(super) fn row(case: &mut Case, g: &mut Gen, cols: u32) -> Tensor {
    let h = sum(case, g, cols, 1);
    case.expect(h);
    let normed = g.coin();
    let u = g.coin().then(|| case.vector(g, cols));
    let x = if normed { super::rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])) } else { h };
    super::pack_q8(&mut case.rec, x)
}

/// One to three products, of formats of their own, odd and even numbers of rows on both sides of a workgroup's, one workgroup's alone among them;
/// rows of one block of weights and as long as may be, whole and other numbers of subgroups' elements.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let of_32 = ty.block_size() == 32 && g.coin();
    let cols = if of_32 { 32 * g.pick(&[1, 4, 33, 79]) } else { 256 * g.pick(&[1, 5, 9, 10]) };
    let mut case = Case::new(1);
    let packed = row(&mut case, g, cols);
    let count = g.pick(&[1, 2, 3]);
    for n in 0..count {
        let ty = if n == 0 { ty } else { g.format_with(|f| f.units.is_some() && cols.is_multiple_of(f.ty.block_size() as u32)) };
        let rows = if count == 1 { g.pick(&[16, 97]) } else { g.pick(&[31, 33, 64, 97]) };
        let w = case.weight(g, ty, rows, cols);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    }
    case
}
