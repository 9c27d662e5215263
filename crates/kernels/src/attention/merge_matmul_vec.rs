//! A product of one row. The same kernel joins the parts of the attention and packs the row.

use super::attention_decode_window::splits;
use super::fused::{AttentionDecode, Problem};
use super::ladder;
use crate::graph::operation::{Io, Operation, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, When};
use crate::matmul::product::Product;

kernel! {
    MERGE_MATMUL_VEC: "merge_matmul_vec",
    wgsl: [
        "attention/merge_matmul_vec.wgsl", "shared/acts_own.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl",
        "shared/dot_q8.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, head_dim: u32, splits: u32, exchange: u32 },
    bindings: Bind { partial: Read, w: Weight(Units), y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 18176 },
}

/// Rows of the weight per workgroup.
const WEIGHT_ROWS: u32 = 16;

/// y = w x, where x is the packed attention. No other operation reads x.
#[derive(Clone, Debug)]
pub struct MergeMatmulVec {
    pub attention: AttentionDecode,
    pub product: Product,
}

impl Operation for MergeMatmulVec {
    fn io(&self) -> Io {
        Io { writes: vec![self.product.y], ..self.attention.io() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.attention.work(counts).plus(self.product.work(counts))
    }
}

impl Lowering for MergeMatmulVec {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let near = [self.attention.lower(cx), self.product.lower(cx)].concat();
        let Some(parts) = ladder::dispatch(Problem::Window(&self.attention), cx) else { return near };
        let (w, partial, splits) = (self.product.w, self.attention.split.partial, splits(&self.attention));
        let params = Params {
            k: w.cols,
            n: w.rows,
            head_dim: self.attention.split.of.q.shape.dim,
            splits,
            exchange: cx.caps.subgroup_size,
        };
        let bind = Bind { partial: partial.into(), w: w.into(), y: self.product.y.into() };
        let merged =
            bind.dispatch(params, Grid::PerRow { lead: self.product.x.shape, per_row: w.rows.div_ceil(WEIGHT_ROWS) });
        let keys = cx.caps.table.window_keys;
        let near = near.into_iter().map(|dispatch| Dispatch { when: When::Near(keys), ..dispatch });
        near.chain([parts, merged].map(|dispatch| Dispatch { when: When::far(keys), ..dispatch })).collect()
    }
}
