//! Product of one row of 8-bit activations with a quantized weight matrix.

use super::add::add_bias;
use super::matmul::{Matmul, Operand};
use super::pack_q8::{BLOCK, activations};
use super::{Io, Operation, Work, add, pack_q8, rms_norm};
use crate::exec::cpu::Host;
use crate::format;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, parts};
use crate::record::Recorder;
use crate::tensor::{Counts, Shape, Tensor, Weight};

kernel! {
    MATMUL_VEC_Q8: "matmul_vec_q8",
    entry: "matmul_vec_q8",
    wgsl: [
        "matmul_vec_q8.wgsl", "shared/lanes_32.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, row_base: u32, row_count: u32, has_bias: u32, exchange: u32 },
    bindings: Bind { x: Read, w: Units, bias: Read, y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
}

kernel! {
    MATMUL_VEC_Q8_LONG: "matmul_vec_q8_long" = MATMUL_VEC_Q8 with
    wgsl: [
        "matmul_vec_q8.wgsl", "shared/lanes_192.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

kernel! {
    MATMUL_VEC_Q8_MIDDLE: "matmul_vec_q8_middle" = MATMUL_VEC_Q8 with
    wgsl: [
        "matmul_vec_q8.wgsl", "shared/lanes_96.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ]
}

/// Weight rows per workgroup.
const ROWS: u32 = 2;
/// Columns above which six times as many threads share a row, so that rows of up to 12288 columns take one turn: 1536 rows of 12288 take 8.3 us by
/// 32 threads and 7.0 by 128 in Q4_K, 11.2 and 9.1 in Q6_K; a token of a model with 8960 columns, 1.4% less by 192 than by 128 (NVIDIA H200).
const LONG: u32 = 4096;
/// Steps of 32 columns, or of 64 in formats with blocks of 256, above which 96 threads share a row instead of 32: with 1024 rows of 2048 and of 3072
/// columns in Q8_0 in every layer, a token takes 1.8% less by 64 threads than by 32, and 1.7% less again by 96 (NVIDIA H200).
const MIDDLE: u32 = 32;
/// Rows of a weight from which on there are workgroups enough: for fewer, more threads share a row.
const MANY: u32 = 16384;

/// Whether a weight is read in units, and so can meet 8-bit activations.
#[must_use]
pub fn serves(w: Weight) -> bool {
    w.cols.is_multiple_of(BLOCK) && format::format(w.ty).is_some_and(|f| f.units.is_some())
}

/// y = w x with `packed` activations of K elements; as [`super::matmul()`] otherwise.
pub fn matmul_q8(rec: &mut Recorder, w: Weight, packed: Tensor) -> Tensor {
    assert_eq!(packed.shape.dim, w.cols / 8 * 3, "matmul_q8: {} packed words with a weight of {} columns", packed.shape.dim, w.cols);
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..packed.shape });
    rec.push(Matmul { w, x: packed, operand: Operand::Q8, exact: false, bias: None, y });
    y
}

/// The dispatches of a product with one row of packed activations, one for each part of the weight.
pub fn lower(op: &Matmul, cx: &Lower<'_>) -> Vec<Dispatch> {
    summed(op, op.bias.map(Arg::from), op.y, cx)
}

/// The same of `to` = product + `bias`.
pub(super) fn summed(op: &Matmul, bias: Option<Arg>, to: Tensor, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: bias.unwrap_or(Arg::None), y: to.into() };
        let row_count = range.len() as u32;
        let grid = Grid::PerRow { lead: op.x.shape, per_row: row_count.div_ceil(ROWS) };
        let (has_bias, exchange) = (u32::from(bias.is_some()), cx.caps.subgroup_size);
        let dispatch = bind.dispatch(Params { k, row_base: range.start, row_count, has_bias, exchange }, grid);
        let steps = k / if ty.block_size() == 32 { 32 } else { 64 };
        match k > LONG {
            true => Dispatch { row: &MATMUL_VEC_Q8_LONG, ..dispatch },
            false if steps > MIDDLE && n < MANY => Dispatch { row: &MATMUL_VEC_Q8_MIDDLE, ..dispatch },
            false => dispatch,
        }
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}

/// h = a + product, by the same kernel, whose bias a is. Made by the planner, never recorded.
#[derive(Clone, Debug)]
pub struct MatmulVecAdd {
    pub product: Matmul,
    pub a: Tensor,
    pub h: Tensor,
}

impl Operation for MatmulVecAdd {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.x, self.a], writes: vec![self.h] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        summed(&self.product, Some(self.a.into()), self.h, cx)
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Every format with units, rows of less and of more than the lanes read at a time, and of so many that more lanes read them, row counts at the workgroup's edges, blocks of zeros, and activations whose norm's factor is left to the
/// product: a single result of these could cancel to nothing, where a relative error tells nothing.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let long = g.pick(&[false, false, true]);
    let blocks = if ty.block_size() == 32 { g.pick(&[1, 2, 4, 16, 33, 70]) } else { g.pick(&[1, 2, 3, 5, 9]) };
    let cols = ty.block_size() as u32 * blocks + if long { LONG } else { 0 };
    let (n, normed) = (if long { g.pick(&[31, 32, 65]) } else { g.dim() }, g.coin());
    let n = if normed { n.max(31) } else { n };
    let mut case = Case::new(1);
    let w = case.weight(g, ty, n, cols);
    let packed = activations(&mut case, g, cols, normed);
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul_q8(&mut case.rec, w, packed);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}

/// A sum with a product whose norm two other products read, so that they pack it; the product on either side of the sum.
pub fn sum_case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.units.is_some());
    let (cols, n) = (256 * g.pick(&[1, 2, 5]), 256 * g.pick(&[1, 2]));
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    let w = case.weight(g, ty, n, cols);
    let a = case.tensor(g, n);
    let y = matmul_q8(&mut case.rec, w, packed);
    let h = if g.coin() { add(&mut case.rec, a, y) } else { add(&mut case.rec, y, a) };
    case.expect(h);
    let x = rms_norm(&mut case.rec, h, None, 1e-6);
    let packed = pack_q8(&mut case.rec, x);
    for _ in 0..2 {
        let w = case.weight(g, ty, 64, n);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    }
    case
}
