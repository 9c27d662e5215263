//! Rotary position embedding from rows of cosines and sines.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::{Recorder, RopeTable};
use crate::tensor::Tensor;

kernel! {
    ROPE: "rope",
    entry: "rope",
    wgsl: ["rope.wgsl", "shared/grid.wgsl"],
    params: Params { heads: u32, head_dim: u32, dim: u32, rows: u32 },
    bindings: Bind { x: Read, table: Read, y: Write },
    cpu: cpu_ref::rope,
    nmse: 1e-12,
}

/// y = x rotated by the angles of `table`.
#[derive(Clone, Debug)]
pub struct Rope {
    pub x: Tensor,
    pub table: Tensor,
    pub y: Tensor,
}

/// Rotates the pairs (i, i + dim / 2) of every head of `x` [T, N, H] by the angles of `rows` [T, dim / 2, 2]
/// ([`Recorder::rope_rows`]); elements past dim are copied. f32.
pub fn rope(rec: &mut Recorder, x: Tensor, rows: Tensor) -> Tensor {
    assert!(rows.shape.dim <= x.shape.dim && rows.shape.dim.is_multiple_of(2), "rope of {} in heads of {}", rows.shape.dim, x.shape.dim);
    let y = rec.make(x.shape);
    rec.push(Rope { x, table: rows, y });
    y
}

impl Operation for Rope {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.table], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { heads: shape.heads, head_dim: shape.dim, dim: self.table.shape.dim, rows: shape.rows };
        let grid = Grid::Elements { lead: shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), table: self.table.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let (heads, dim) = (self.x.shape.heads as usize, self.x.shape.dim as usize);
        let mut y = host.take(self.y);
        cpu_ref::rope(host.f32(self.x), host.f32(self.table), heads, dim, &mut y);
        host.put(self.y, y);
    }
}

/// Whole and partial rotations, with and without divisors and magnitude, at positions up to 131,072.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, head_dim) = (g.small(), g.pick(&[1, 2, 5]), g.pick(&[4, 64, 80, 128, 256]));
    let dim = if g.coin() { head_dim } else { head_dim / 2 };
    let factors = g.coin().then(|| (0..dim / 2).map(|i| if i % 3 == 2 { 1e30 } else { 1.0 + f64::from(i) }).collect());
    let mut case = Case::new(rows);
    case.place(g, 131_072);
    let (scale, magnitude) = (g.pick(&[1.0, 0.125]), g.pick(&[1.0, 1.2]));
    let table = RopeTable { scale, factors, magnitude, ..RopeTable::new(dim, g.pick(&[1e4, 1e6])) };
    let rope_rows = case.rec.rope_rows(&table);
    let x = case.tensor(g, heads * head_dim).heads(heads);
    let y = rope(&mut case.rec, x, rope_rows);
    case.expect(y);
    case
}
