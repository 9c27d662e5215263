//! Picks the rows whose logits are asked for.

use super::add::Add;
use super::mul::Mul;
use super::{Io, Op, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, Uses};
use crate::record::{Node, Recorder};
use crate::tensor::{Input, Shape, Tensor};

kernel! {
    GATHER_ROWS: "gather_rows",
    entry: "gather_rows",
    wgsl: ["gather_rows.wgsl", "shared/grid.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { x: Read, out_rows: Read, y: Write },
    cpu: cpu_ref::gather_rows,
    nmse: 1e-12,
}

/// y\[o\] = x[out_rows\[o\]].
#[derive(Clone, Debug)]
pub struct GatherRows {
    pub x: Tensor,
    pub out_rows: Tensor,
    pub y: Tensor,
}

/// The rows of `x` [T, D] that the step asks logits for; [Out, D], f32.
pub fn gather_rows(rec: &mut Recorder, x: Tensor) -> Tensor {
    let out_rows = rec.input(Input::OutRows);
    let y = rec.make(Shape { heads: 1, dim: x.shape.width(), ..out_rows.shape });
    rec.push(GatherRows { x, out_rows, y });
    y
}

/// What makes a row that is then gathered from steps of one row.
pub(crate) fn pattern(nodes: &[Node], uses: &Uses) -> Option<Op> {
    let [Node { op, .. }, Node { op: Op::GatherRows(gather), .. }, ..] = nodes else { return None };
    let GatherRows { x, y, .. } = *gather;
    if x.shape.rows != 1 || y.shape.rows != 1 || !uses.once(x) {
        return None;
    }
    match op {
        Op::Add(add) if add.y.id == x.id => Some(Add { y, ..add.clone() }.into()),
        Op::Mul(mul) if mul.y.id == x.id => Some(Mul { y, ..mul.clone() }.into()),
        _ => None,
    }
}

impl Operation for GatherRows {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.out_rows], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.y.shape.dim, rows: self.y.shape.rows };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), out_rows: self.out_rows.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::gather_rows(host.f32(self.x), host.u32(self.out_rows), &mut y);
        host.put(self.y, y);
    }
}

/// Some rows, in any order, with repeats.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    case.input.out_rows = (0..rows).map(|_| (g.bits() % u64::from(rows)) as u32).collect();
    let x = case.tensor(g, dim);
    let y = gather_rows(&mut case.rec, x);
    case.expect(y);
    case
}
