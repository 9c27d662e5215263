//! The norm of every head and its rotation, in one kernel. Made by the planner, never recorded.

use super::{Io, Op, Operation, rms_norm, rope};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Arg, Dispatch, Grid, Lower, Makers};
use crate::record::RopeTable;
use crate::tensor::{Shape, Tensor, Weight};

kernel! {
    NORM_ROPE: "norm_rope",
    entry: "norm_rope",
    wgsl: [
        "norm_rope.wgsl", "shared/heads_quads.wgsl", "shared/head_turns.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/lanes.wgsl"
    ],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32, lanes: u32, exchange: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, table: Read, y: Write },
    cpu: cpu_ref::rope,
    nmse: 1e-10,
}

/// Threads of a workgroup.
pub(super) const WG: u32 = 128;

/// Threads that share a head, a quad each, of rows of heads in quads.
pub(super) fn lanes(head_dim: u32) -> u32 {
    (head_dim / 4).next_power_of_two()
}

/// y = rope(x / sqrt(mean(x^2) + eps) * w), head by head.
#[derive(Clone, Debug)]
pub struct NormRope {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub table: Tensor,
    pub y: Tensor,
}

/// Rotation of what a norm of heads made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::Rope(rope) = op else { return None };
    let Op::RmsNorm(norm) = makers.alone(rope.x)? else { return None };
    // A head of the norm must be a head of the rotation, and fit the kernel's memory.
    let shape = norm.x.shape;
    let in_quads = shape.dim.is_multiple_of(4) && rope.table.shape.dim.is_multiple_of(8);
    if norm.y.shape != rope.x.shape || shape.dim > super::attention::MAX_HEAD_DIM || !in_quads {
        return None;
    }
    let op = NormRope { x: norm.x, w: norm.w, eps: norm.eps, table: rope.table, y: rope.y }.into();
    Some(Absorbed { op, of: vec![rope.x], early: false })
}

impl Operation for NormRope {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.table], writes: vec![self.y] }
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let lanes = lanes(shape.dim);
        let params = Params {
            heads: shape.heads,
            head_dim: shape.dim,
            dim: self.table.shape.dim,
            rows: shape.rows,
            lanes,
            exchange: cx.caps.subgroup_size.min(WG),
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let bind = Bind { x: self.x.into(), w: Arg::from(self.w), table: self.table.into(), y: self.y.into() };
        vec![bind.dispatch(params, Grid::Elements { lead: Shape { dim: lanes, ..shape }, workgroup: WG, per_thread: 1 })]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The two parts as a model records them: heads shorter and longer than a workgroup, whole and partial rotations.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, head_dim) = (g.pick(&[1, 2, 3, 26, 26]), g.pick(&[1, 2, 3, 5]), g.pick(&[16, 64, 80, 128, 256, 512]));
    let dim = if g.coin() { head_dim } else { head_dim / 2 };
    let mut case = Case::new(rows);
    case.place(g, 131_072);
    let table = case.rec.rope_rows(&RopeTable::new(dim, 1e4));
    let w = g.coin().then(|| case.vector(g, head_dim));
    let x = case.squared(g, heads * head_dim).heads(heads);
    let x = rms_norm(&mut case.rec, x, w, 1e-6);
    let y = rope(&mut case.rec, x, table);
    case.expect(y);
    case
}
