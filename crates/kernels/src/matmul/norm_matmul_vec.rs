//! A product in f32 of rows that it norms itself, so that other readers of the normed rows can pack
//! them without a separate norm. More rows go to `matmul_narrow`. The planner makes it; it is
//! never recorded.

use super::matmul_narrow;
use crate::caps::Caps;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;
use gguf::GgmlType;

kernel! {
    NORM_MATMUL_VEC: "norm_matmul_vec",
    wgsl: ["matmul/norm_matmul_vec.wgsl", "shared/norm_share.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, has_weight: u32, eps: f32, scale: f32 },
    bindings: Bind { h: Read, w: Weight(Any), u: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 4;

/// Largest number of rows, each of which reads the weight.
const MOST_ROWS: u32 = 8;

/// Whether these kernels take `rows` rows with the weight on this device. Types other than f32
/// would be dequantized again for every row.
#[must_use]
pub fn serves(w: Weight, rows: u32, caps: &Caps) -> bool {
    let vec = || {
        (rows == 1 || w.ty == GgmlType::F32) && w.cols.is_multiple_of(4) && parts(caps, w.ty, w.rows, w.cols).len() == 1
    };
    if rows > MOST_ROWS { matmul_narrow::serves(w, rows, caps) } else { vec() }
}

/// y = scale x w^T with x = h / sqrt(mean(h^2) + eps) * u.
#[derive(Clone, Debug)]
pub struct NormMatmulVec {
    pub w: Weight,
    pub h: Tensor,
    pub u: Option<Weight>,
    pub eps: f32,
    pub scale: f32,
    pub y: Tensor,
}

impl Operation for NormMatmulVec {
    fn io(&self) -> Io {
        Io { reads: vec![self.h], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        crate::matmul::product::work(self.w, self.y, counts)
    }
}

impl Lowering for NormMatmulVec {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let (k, n, rows) = (self.w.cols, self.w.rows, self.h.shape.rows);
        if rows > MOST_ROWS {
            return vec![matmul_narrow::lower_normed(
                [self.h, self.y],
                self.w,
                self.u,
                [self.eps, self.scale],
                cx.caps,
            )];
        }
        let bind = Bind { h: self.h.into(), w: self.w.into(), u: Arg::from(self.u), y: self.y.into() };
        let params = Params { k, n, rows, has_weight: u32::from(self.u.is_some()), eps: self.eps, scale: self.scale };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.h.shape, per_row: n.div_ceil(WEIGHT_ROWS) })]
    }
}
