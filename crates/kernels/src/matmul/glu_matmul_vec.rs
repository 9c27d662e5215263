//! A product of one row. The same kernel computes the gated activation and packs the row. The
//! planner makes it; it is never recorded.

use super::product::Product;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::norm::glu_pack_q8::GluPackQ8;

kernel! {
    GLU_MATMUL_VEC: "glu_matmul_vec",
    wgsl: [
        "matmul/glu_matmul_vec.wgsl", "shared/acts_own.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl",
        "shared/q8_block.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, start: u32, lanes: u32, exchange: u32 },
    bindings: Bind { gate: Read, up: Read, w: Weight(Units), y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 7424 },
}

const WG: u32 = 128;

/// Elements of a weight row per thread: one unit, so that no thread has more than one.
const PER_LANE: u32 = 32;

/// Largest number of columns: a unit for each of 32 threads.
pub(crate) const MOST_COLS: u32 = 32 * PER_LANE;

/// y = w x, where x is the packed gated activation. No other operation reads x.
#[derive(Clone, Debug)]
pub struct GluMatmulVec {
    pub glu: GluPackQ8,
    pub product: Product,
}

impl Operation for GluMatmulVec {
    fn io(&self) -> Io {
        Io { reads: vec![self.glu.gate, self.glu.up], writes: vec![self.product.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        self.product.work(counts)
    }
}

impl Lowering for GluMatmulVec {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let w = self.product.w;
        let lanes = (w.cols / PER_LANE).clamp(2, 32).next_power_of_two();
        let bind = Bind { gate: self.glu.gate.into(), up: self.glu.up.into(), w: w.into(), y: self.product.y.into() };
        let params = Params { k: w.cols, n: w.rows, start: self.glu.start, lanes, exchange: cx.caps.subgroup_size };
        vec![
            bind.dispatch(params, Grid::PerRow { lead: self.glu.gate.shape, per_row: w.rows.div_ceil(2 * WG / lanes) }),
        ]
    }
}
