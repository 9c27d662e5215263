//! Up to three products of one row of 8-bit activations in one kernel, or of a few rows. Made by the planner, never recorded.

use super::matmul::{Matmul, Operand};
use super::matmul_few_q8;
use super::pack_q8::activations;
use super::{Io, Op, Operation, Work, add_bias, matmul_few_q8_group};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers, parts};
use crate::tensor::Counts;

kernel! {
    MATMUL_VEC_GROUP: "matmul_vec_group",
    entry: "matmul_vec_group",
    wgsl: ["matmul_vec_group.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows_a: u32, rows_b: u32, rows_c: u32, biases: u32, exchange: u32 },
    bindings: Bind {
        x: Read, wa: Units, wb: Units, wc: Units, bias_a: Read, bias_b: Read, bias_c: Read, ya: Write, yb: Write, yc: Write
    },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
}

/// Weights that one kernel reads.
const MOST: usize = 3;
/// Weight rows per workgroup.
const ROWS: u32 = 2;

/// Two or three products of the same packed rows.
#[derive(Clone, Debug)]
pub struct MatmulGroup {
    pub products: Vec<Matmul>,
}

/// Whether a kernel can take this product beside others: packed rows, not short where there are several, and a weight that one binding holds.
pub(super) fn joins(product: &Matmul, caps: &Caps) -> bool {
    let w = product.w;
    let served = product.x.shape.rows == 1 || w.cols > matmul_few_q8::SHORT;
    served && product.operand == Operand::Q8 && parts(caps, w.ty, w.rows, w.cols).len() == 1
}

/// A product of what products before it read, too: it moves to them.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::Matmul(product) = op else { return None };
    if !joins(product, makers.caps) || !MATMUL_VEC_GROUP.fits(makers.caps) {
        return None;
    }
    let before = |op: &Op| match op {
        Op::Matmul(other) => other.x.id == product.x.id && joins(other, makers.caps),
        Op::MatmulGroup(group) => group.products[0].x.id == product.x.id && group.products.len() < MOST,
        _ => false,
    };
    let mut products = match makers.latest(before)? {
        Op::Matmul(other) => vec![other.clone()],
        Op::MatmulGroup(group) => group.products.clone(),
        _ => return None,
    };
    let of = products.iter().map(|product| product.y).collect();
    products.push(product.clone());
    Some(Absorbed { op: MatmulGroup { products }.into(), of, early: true })
}

impl MatmulGroup {
    /// Which products add a bias, a bit for each.
    pub(super) fn biases(&self) -> u32 {
        self.products.iter().zip(0..).map(|(product, bit)| u32::from(product.bias.is_some()) << bit).sum()
    }
}

impl Operation for MatmulGroup {
    fn io(&self) -> Io {
        Io { reads: vec![self.products[0].x], writes: self.products.iter().map(|product| product.y).collect() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.products.iter().fold(Work::default(), |sum, product| sum.plus(product.work(counts)))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if self.products[0].x.shape.rows > 1 {
            return vec![matmul_few_q8_group::lower(self, cx)];
        }
        let [a, b] = [&self.products[0], &self.products[1]];
        let c = self.products.get(2);
        let rows = |product: &Matmul| product.w.rows;
        let params = Params {
            k: a.w.cols,
            rows_a: rows(a),
            rows_b: rows(b),
            rows_c: c.map_or(0, rows),
            biases: self.biases(),
            exchange: cx.caps.subgroup_size,
        };
        let bind = Bind {
            x: a.x.into(),
            wa: a.w.into(),
            wb: b.w.into(),
            wc: c.unwrap_or(b).w.into(),
            bias_a: a.bias.into(),
            bias_b: b.bias.into(),
            bias_c: c.and_then(|product| product.bias).into(),
            ya: a.y.into(),
            yb: b.y.into(),
            yc: c.map_or(Arg::Spare, |product| product.y.into()),
        };
        let per_row = self.products.iter().map(|product| rows(product).div_ceil(ROWS)).sum();
        vec![bind.dispatch(params, Grid::PerRow { lead: a.x.shape, per_row })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Two and three products of a row, of formats of their own, odd and even numbers of rows (never one, whose result could cancel to
/// nothing), with and without biases and a norm whose factor is left to them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let cols = 256 * g.pick(&[1, 2, 5, 9]);
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    for n in 0..g.pick(&[2, 3]) {
        let ty = if n == 0 { ty } else { g.format_with(|f| f.units.is_some()) };
        let rows = if normed { g.pick(&[31, 64, 97]) } else { g.pick(&[2, 3, 31, 64, 97]) };
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = super::matmul_vec_q8::matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
