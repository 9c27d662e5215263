//! Soft limit on logits and attention scores.

use super::matmul::{Matmul, Operand};
use super::{Io, Op, Operation, Work, matmul_vec_q8};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers};
use crate::record::Recorder;
use crate::tensor::{Counts, Tensor};

kernel! {
    SOFTCAP: "softcap",
    entry: "softcap",
    wgsl: ["softcap.wgsl", "shared/soft_cap.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, cap: f32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::softcap,
    nmse: 1e-10,
}

/// y = cap tanh(x / cap); the product that makes x is put there by the planner.
#[derive(Clone, Debug)]
pub struct Softcap {
    pub x: Tensor,
    pub cap: f32,
    pub product: Option<Matmul>,
    pub y: Tensor,
}

/// y = cap * tanh(x / cap), element by element; `x` [T, D], f32 (Gemma 2 report, arXiv 2408.00118).
pub fn softcap(rec: &mut Recorder, x: Tensor, cap: f32) -> Tensor {
    assert!(cap > 0.0, "softcap of {cap}");
    let y = rec.make(x.shape);
    rec.push(Softcap { x, cap, product: None, y });
    y
}

/// A limit of a product of one row that nobody else reads.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::Softcap(limit @ Softcap { product: None, .. }) = op else { return None };
    let Op::Matmul(product) = makers.alone(limit.x)? else { return None };
    let ends = product.operand == Operand::Q8 && product.x.shape.rows == 1;
    let op = Softcap { product: Some(product.clone()), ..limit.clone() };
    ends.then(|| Absorbed { op: op.into(), of: vec![limit.x], early: false })
}

impl Operation for Softcap {
    fn io(&self) -> Io {
        Io { reads: vec![self.product.as_ref().map_or(self.x, |product| product.x)], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let elements = u64::from(self.y.shape.rows_at(counts)) * u64::from(self.y.shape.width());
        self.product.as_ref().map_or(Work { bytes: 8 * elements, ..Work::default() }, |product| product.work(counts))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if let Some(product) = &self.product {
            return matmul_vec_q8::ended(product, product.bias.into(), self.cap, self.y, cx);
        }
        let n = self.y.shape.elements() as u32;
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(Params { n, cap: self.cap }, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        host.by_rows(self.x, self.y, |_, x, y| cpu_ref::softcap(x, f64::from(self.cap), y));
    }
}

/// From inputs far below the cap, where the result is the input, to saturation.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let cap = g.pick(&[30.0, 50.0, 8.0, 0.5]);
    let y = softcap(&mut case.rec, x, cap);
    case.expect(y);
    case
}
