//! A product of one row with the join of an attention's parts and the packing that make the row, in one kernel. Made by the planner, never recorded.

use super::attention_short::{AttentionShort, Drawn, recorded_for};
use super::attention_short_parts;
use super::matmul::Matmul;
use super::matmul_vec_group::joins;
use super::matmul_vec_q8::matmul_q8;
use super::{Io, Op, Operation, Work};
use crate::device::Caps;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower, When};
use crate::tensor::Counts;

kernel! {
    MERGE_MATMUL_VEC: "merge_matmul_vec",
    entry: "merge_matmul_vec",
    wgsl: [
        "merge_matmul_vec.wgsl", "shared/acts_own.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/unit.wgsl", "shared/dot_q8.wgsl",
        "shared/lanes.wgsl", "shared/lanes_near.wgsl", "shared/grid.wgsl"
    ],
    params: Params { k: u32, n: u32, head_dim: u32, splits: u32, exchange: u32 },
    bindings: Bind { partial: Read, w: Units, y: Write },
    cpu: cpu_ref::matmul_vec,
    nmse: 1e-4,
}

/// Columns that a workgroup has room for.
const MOST_COLS: u32 = 2560;
/// Weight rows per workgroup.
const ROWS: u32 = 16;
/// Positions from which on parts and their join are faster: with 8 heads of 256 that share their keys a layer takes 15.0 us at 512 keys as one kernel and a product
/// and 10.5 as these two, 10.6 and 10.9 below 128 (NVIDIA H200).
const KEYS: u32 = 128;

/// y = w x, with x the packed attention, which no other operation reads.
#[derive(Clone, Debug)]
pub struct MergeMatmulVec {
    pub attention: AttentionShort,
    pub product: Matmul,
}

/// A product that reads the packed attention of a window.
pub(crate) fn inline(maker: &Op, reader: &Op, caps: &Caps) -> Option<Op> {
    let (Op::AttentionShort(attention), Op::Matmul(product)) = (maker, reader) else { return None };
    let short = product.w.cols <= MOST_COLS && product.bias.is_none() && joins(product, caps);
    let fits = short && attention_short_parts::served(attention, caps).is_some() && MERGE_MATMUL_VEC.fits(caps);
    fits.then(|| MergeMatmulVec { attention: attention.clone(), product: product.clone() }.into())
}

impl Operation for MergeMatmulVec {
    fn io(&self) -> Io {
        Io { writes: vec![self.product.y], ..self.attention.io() }
    }

    fn work(&self, counts: Counts) -> Work {
        self.attention.work(counts).plus(self.product.work(counts))
    }

    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let near = [self.attention.lower(cx), self.product.lower(cx)].concat();
        let Some(splits) = attention_short_parts::served(&self.attention, cx.caps) else { return near };
        let (w, partial) = (self.product.w, self.attention.split.partial);
        let params =
            Params { k: w.cols, n: w.rows, head_dim: self.attention.split.of.q.shape.dim, splits, exchange: cx.caps.subgroup_size };
        let bind = Bind { partial: partial.into(), w: w.into(), y: self.product.y.into() };
        let merged = bind.dispatch(params, Grid::PerRow { lead: self.product.x.shape, per_row: w.rows.div_ceil(ROWS) });
        let near = near.into_iter().map(|dispatch| Dispatch { when: When::Near(KEYS), ..dispatch });
        let far = [attention_short_parts::lower(&self.attention, splits, cx), merged];
        near.chain(far.map(|dispatch| Dispatch { when: When::Far(KEYS), ..dispatch })).collect()
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// Attention as models record it, over windows that end in each of the parts and before their positions or not, whole and in rings, with and without keys of its
/// own, and a product of it: rows of weights on both sides of a workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (heads, group) = (g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[128, 129, 190, 191, 192, 255, 300, 511, 512, 1024]);
    let window = Some(g.pick(&[129, 192, 193, 256, 257, 300, 449, 511, 512]));
    let drawn = Drawn { heads, dim: 256, group, position, window, capped: false, whole: true };
    recorded_for(g, drawn, |case, g, packed| {
        let ty = g.format_with(|f| f.units.is_some());
        let n = g.pick(&[31, 32, 33, 64, 97]);
        let w = case.weight(g, ty, n, heads * group * 256);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    })
}
