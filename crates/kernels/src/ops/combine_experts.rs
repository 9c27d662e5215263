//! The weighted sum of what a row's experts made.

use super::{Io, Operation, Work};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Counts, Shape, Tensor};

kernel! {
    COMBINE_EXPERTS: "combine_experts",
    entry: "combine_experts",
    wgsl: ["combine_experts.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, k: u32 },
    bindings: Bind { x: Read, weights: Read, y: Write },
    cpu: cpu_ref::combine_experts,
    nmse: 1e-10,
}

/// y\[t\] = sum of weights[t, j] x[t, j].
#[derive(Clone, Debug)]
pub struct CombineExperts {
    pub x: Tensor,
    pub weights: Tensor,
    pub y: Tensor,
}

/// y[t, d] = sum_j weights[t, j] x[t, j, d]; `x` [T, k, D], `weights` [T, k]; returns [T, D], f32.
pub fn combine_experts(rec: &mut Recorder, x: Tensor, weights: Tensor) -> Tensor {
    assert_eq!((x.shape.rows, x.shape.heads), (weights.shape.rows, weights.shape.width()), "combine_experts: a weight per choice");
    let y = rec.make(Shape { heads: 1, ..x.shape });
    rec.push(CombineExperts { x, weights, y });
    y
}

impl Operation for CombineExperts {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.weights], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        let (rows, k, dim) = (u64::from(self.x.shape.rows_at(counts)), u64::from(self.x.shape.heads), u64::from(self.x.shape.dim));
        Work { flops: 2 * rows * k * dim, bytes: 4 * rows * (k * dim + k + dim), weight_bytes: 0 }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { n: self.y.shape.elements() as u32, dim: self.y.shape.dim, k: self.x.shape.heads };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), weights: self.weights.into(), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        cpu_ref::combine_experts(host.f32(self.x), host.f32(self.weights), self.y.shape.dim as usize, &mut y);
        host.put(self.y, y);
    }
}

/// One to sixty-four choices, rows at the workgroup's edges.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, k) = (g.small(), g.dim(), g.pick(&[1, 2, 4, 8, 64]));
    let mut case = Case::new(rows);
    let (x, weights) = (case.tensor(g, k * dim).heads(k), case.tensor(g, k));
    let y = combine_experts(&mut case.rec, x, weights);
    case.expect(y);
    case
}
