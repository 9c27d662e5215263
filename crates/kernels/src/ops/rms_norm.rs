//! Root-mean-square normalisation of rows or of heads.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Arg, Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Tensor, Weight};

kernel! {
    RMS_NORM: "rms_norm",
    entry: "rms_norm",
    wgsl: ["rms_norm.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, has_weight: u32, eps: f32 },
    bindings: Bind { x: Read, w: Read, y: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
}

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis.
#[derive(Clone, Debug)]
pub struct RmsNorm {
    pub x: Tensor,
    pub w: Option<Weight>,
    pub eps: f32,
    pub y: Tensor,
}

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis of `x` [T, D] or [T, N, H]; `w` \[D\] (or \[H\]) or none. f32.
pub fn rms_norm(rec: &mut Recorder, x: Tensor, w: Option<Weight>, eps: f32) -> Tensor {
    assert!(w.is_none_or(|w| w.cols == x.shape.dim), "rms_norm of rows of {} with a weight of {:?}", x.shape.dim, w);
    let y = rec.make(x.shape);
    rec.push(RmsNorm { x, w, eps, y });
    y
}

impl Operation for RmsNorm {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params {
            dim: shape.dim,
            rows: shape.rows * shape.heads,
            has_weight: u32::from(self.w.is_some()),
            eps: self.eps,
        };
        let grid = Grid::PerRow { lead: shape, per_row: shape.heads };
        vec![Bind { x: self.x.into(), w: Arg::from(self.w), y: self.y.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let dim = self.x.shape.dim as usize;
        host.by_rows(self.x, self.y, |host, x, y| {
            let w = self.w.map(|w| host.vector(w));
            cpu_ref::rms_norm(x, w, dim, f64::from(self.eps), y);
        });
    }
}

/// Rows at the workgroup's edges, near epsilon, near overflow of the square, and all equal; per head too.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim(), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let x = case.squared(g, heads * dim).heads(heads);
    let y = rms_norm(&mut case.rec, x, w, eps);
    case.expect(y);
    case
}
