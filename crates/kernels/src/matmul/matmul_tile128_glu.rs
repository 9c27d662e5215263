//! Two products of many rows with their gated activation, straight to f16, through cooperative
//! matrices. The planner makes it; it is never recorded.

use super::matmul_tile128::TILE;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    MATMUL_TILE128_GLU: "matmul_tile128_glu",
    wgsl: [
        "matmul/matmul_tile128_glu.wgsl", groups, "matmul/pieces/tile128_slots.wgsl", "matmul/pieces/tile128_loop.wgsl", "shared/unit.wgsl", "matmul/pieces/tile128_groups.wgsl", "shared/half_scale.wgsl",
        "matmul/pieces/coarse_scale.wgsl", activation
    ],
    params: Params { k: u32, n: u32, rows: u32, slab: u32 },
    bindings: Bind { x: Read, scales: Read, w: Weight(Groups), up: Weight(Second), tops: Write, halves: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-6,
    needs: { threads: 128, workgroup_bytes: 23552 },
    variants: {
        SILU: "matmul_tile128_glu_silu" { groups: vary { GROUPS: 8 }, activation: choose ["shared/silu4.wgsl"] },
        GELU: "matmul_tile128_glu_gelu" { groups: vary { GROUPS: 8 }, activation: choose ["shared/gelu4.wgsl", "shared/gelu.wgsl"] },
    },
}

/// Columns of each weight per workgroup.
pub(crate) const COLUMNS: u32 = TILE / 2;

/// tops, halves = activation(x gate^T) (x up^T) in f16. Every 32 columns are divided by a power of
/// two of their own.
#[derive(Clone, Debug)]
pub struct MatmulTile128Glu {
    pub gate: Weight,
    pub up: Weight,
    pub x: Tensor,
    pub scales: Tensor,
    /// gelu (tanh form) if true, otherwise silu.
    pub gelu: bool,
    pub tops: Tensor,
    pub halves: Tensor,
}

impl Operation for MatmulTile128Glu {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.scales], writes: vec![self.tops, self.halves] }
    }

    fn work(&self, counts: Counts) -> Work {
        let (t, n, k) =
            (u64::from(self.tops.shape.rows_at(counts)), u64::from(self.gate.rows), u64::from(self.gate.cols));
        let weight_bytes = 2 * n * self.gate.ty.row_bytes(self.gate.cols as usize).unwrap_or(0) as u64;
        Work { flops: 4 * t * n * k, bytes: weight_bytes + 2 * t * (n + k), weight_bytes }
    }
}

impl Lowering for MatmulTile128Glu {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params =
            Params { k: self.gate.cols, n: self.gate.rows, rows: self.tops.shape.rows, slab: self.x.shape.rows };
        let [x, scales, tops, halves] = [self.x, self.scales, self.tops, self.halves].map(Into::into);
        let bind = Bind { x, scales, w: self.gate.into(), up: self.up.into(), tops, halves };
        let grid = Grid::Tiles { lead: self.tops.shape, tile: TILE, x: self.gate.rows / COLUMNS };
        vec![bind.dispatch(if self.gelu { &GELU } else { &SILU }, params, grid)]
    }
}
