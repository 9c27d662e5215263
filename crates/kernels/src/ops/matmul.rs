//! Product of many rows with a weight matrix, in tiles; one row goes to `matmul_vec`.

use super::add::{Term, add, add_bias};
use super::scale::scale;
use super::{Io, Op, Operation, Work, matmul_coop, matmul_few, matmul_few_q8, matmul_vec, matmul_vec_q8};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower, Uses, parts};
use crate::record::{LowRank, Node, Recorder};
use crate::tensor::{Counts, Shape, Tensor, Weight};

kernel! {
    MATMUL: "matmul",
    entry: "matmul",
    wgsl: ["matmul.wgsl", "shared/x4.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
}

// Row lengths that are no multiple of 4.
kernel! { MATMUL_TAIL: "matmul_tail" = MATMUL with wgsl: ["matmul.wgsl", "shared/x4_tail.wgsl"] }

/// Rows of activations and of weights per workgroup.
const TILE: u32 = 64;

/// What a product reads of its activations.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    F32,
    /// `x` is packed as [`super::pack_q8()`] does it.
    Q8,
    /// `x` is packed as [`super::pack_f16()`] does it, with the scales of its rows.
    F16 {
        scales: Tensor,
    },
    /// The same in slabs of few rows.
    Slabs {
        scales: Tensor,
    },
}

/// y = x w^T + bias; the bias, and operands other than f32, are put there by the planner.
#[derive(Clone, Debug)]
pub struct Matmul {
    pub w: Weight,
    pub x: Tensor,
    pub operand: Operand,
    /// Whether the planner must leave the operand as it is.
    pub exact: bool,
    pub bias: Option<Weight>,
    pub y: Tensor,
}

/// y[t, n] = sum_k w[n, k] x[t, k]; `w` [N, K] in any weight format, `x` [T, K]; returns [T, N], f32. What [`Recorder::adapt`]
/// added to `w` is added to y through its two factors: y + s (x A^T) B^T.
pub fn matmul(rec: &mut Recorder, w: Weight, x: Tensor) -> Tensor {
    let y = product(rec, w, x, false);
    rec.added_to(w).into_iter().fold(y, |y, LowRank { a, b, scale: s }| {
        let low = product(rec, a, x, false); // [T, r]
        let low = scale(rec, low, s);
        let part = product(rec, b, low, false);
        add(rec, y, part)
    })
}

/// y = x w^T, nothing added, in f32 whatever the plan is asked for: where a choice hangs on the result, as a router's.
pub fn matmul_exact(rec: &mut Recorder, w: Weight, x: Tensor) -> Tensor {
    product(rec, w, x, true)
}

fn product(rec: &mut Recorder, w: Weight, x: Tensor, exact: bool) -> Tensor {
    assert_eq!(x.shape.width(), w.cols, "matmul: rows of {} with a weight of {} columns", x.shape.width(), w.cols);
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..x.shape });
    rec.push(Matmul { w, x, operand: Operand::F32, exact, bias: None, y });
    y
}

/// A product whose only reader adds a bias.
pub(crate) fn bias_pattern(nodes: &[Node], uses: &Uses, _: &Caps) -> Option<(usize, Op)> {
    let [Node { op: Op::Matmul(product), .. }, Node { op: Op::Add(sum), .. }, ..] = nodes else { return None };
    let Term::Row(bias) = sum.b else { return None };
    (sum.a.id == product.y.id && uses.once(product.y)).then(|| (2, Matmul { bias: Some(bias), y: sum.y, ..product.clone() }.into()))
}

impl Operation for Matmul {
    fn io(&self) -> Io {
        let scales = if let Operand::F16 { scales } | Operand::Slabs { scales } = self.operand { Some(scales) } else { None };
        Io { reads: std::iter::once(self.x).chain(scales).collect(), writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let (t, n, k) = (u64::from(self.y.shape.rows_at(counts)), u64::from(self.w.rows), u64::from(self.w.cols));
        let weight_bytes = n * self.w.ty.row_bytes(self.w.cols as usize).unwrap_or(0) as u64;
        Work { flops: 2 * t * n * k, bytes: weight_bytes + 4 * t * (n + k), weight_bytes }
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Weight { ty, rows: n, cols: k, .. } = self.w;
        match self.operand {
            Operand::Q8 if self.x.shape.rows == 1 => return matmul_vec_q8::lower(self, cx),
            Operand::Q8 => return matmul_few_q8::lower(self, cx),
            Operand::F16 { scales } => return matmul_coop::lower(self, scales, cx),
            Operand::Slabs { scales } => return matmul_few::lower(self, scales, cx),
            _ if self.x.shape.rows == 1 => return matmul_vec::lower(self, cx),
            _ => {}
        }
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let w = Arg::Weight(self.w, part as u32);
            let bind = Bind { x: self.x.into(), w, bias: self.bias.into(), y: self.y.into() };
            let rows = self.x.shape.rows;
            let has_bias = u32::from(self.bias.is_some());
            let params = Params { k, n, rows, row_base: range.start, row_count: range.len() as u32, has_bias };
            let grid = Grid::Tiles { lead: self.x.shape, tile: TILE, x: (range.len() as u32).div_ceil(TILE) };
            let dispatch = bind.dispatch(params, grid);
            if k % 4 == 0 { dispatch } else { Dispatch { row: &MATMUL_TAIL, ..dispatch } }
        };
        parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        match self.operand {
            Operand::F32 => host.matmul(self.w, host.f32(self.x), &mut y),
            Operand::F16 { .. } | Operand::Slabs { .. } => unreachable!("the CPU executor runs recordings as they are"),
            Operand::Q8 => {
                let (words, k) = (host.u32(self.x), self.w.cols as usize);
                let mut x = vec![0.0; words.len() / 3 * 8];
                cpu_ref::unpack_q8(words, k, &mut x);
                host.matmul(self.w, &x, &mut y);
            }
        }
        host.put(self.y, y);
    }
}

/// Every format, tile edges in all three dimensions, row lengths that are no multiple of 4, weights in pieces.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.dim().min(130) + 1, g.format());
    let (cols, n) = (g.cols(ty), g.dim().min(300));
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
