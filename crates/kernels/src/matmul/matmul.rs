//! Product of rows with a weight matrix.

use super::product::Product;
use crate::caps::table::measured::MATMUL_MANY_TILES;
use crate::elementwise::add::{Add, add};
use crate::elementwise::dropout::{Dropout, dropout};
use crate::elementwise::scale::{Scale, scale};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::{Dropped, LowRank, Recorder};
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower};
use crate::kernel::split::parts;

/// y = x w^T.
#[derive(Clone, Debug)]
pub struct Matmul {
    pub w: Weight,
    pub x: Tensor,
    /// Whether the product must stay in f32, even if other products are rounded.
    pub exact: bool,
    pub y: Tensor,
}

parameters! { Matmul }

/// y[t, n] = sum_k w[n, k] x[t, k]; `w` [N, K] in any weight format, `x` [T, K]; returns [T, N],
/// f32. If [`Recorder::adapt`] added low-rank factors to `w`, y also gets their part: y + s (x A^T)
/// B^T.
///
/// With dropout ([`Recorder::adapt_dropped`]) the factors read x with some elements set to zero.
pub fn matmul(
    rec: &mut Recorder<impl From<Matmul> + From<Scale> + From<Add> + From<Dropout>>,
    w: Weight,
    x: Tensor,
) -> Tensor {
    let y = product(rec, w, x, false);
    rec.added_to(w).into_iter().fold(y, |y, (LowRank { a, b, scale: s }, dropped)| {
        let x = dropped.map_or(x, |Dropped { rate, key, tensor }| dropout(rec, x, key, tensor, rate));
        let low = product(rec, a, x, false); // [T, r]
        let low = scale(rec, low, s);
        let part = product(rec, b, low, false);
        add(rec, y, part)
    })
}

/// y = x w^T without an adapter, and in f32 even in plans that round. For results that decide a
/// discrete choice, such as a router's logits.
pub fn matmul_exact(rec: &mut Recorder<impl From<Matmul>>, w: Weight, x: Tensor) -> Tensor {
    product(rec, w, x, true)
}

pub(crate) fn product(rec: &mut Recorder<impl From<Matmul>>, w: Weight, x: Tensor, exact: bool) -> Tensor {
    assert_eq!(x.shape.width(), w.cols, "matmul: rows of {} with a weight of {} columns", x.shape.width(), w.cols);
    let y = rec.make(Shape { heads: 1, dim: w.rows, ..x.shape });
    rec.push(Matmul { w, x, exact, y });
    y
}

impl Operation for Matmul {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.w, self.y, counts)
    }
}

/// The cost of a product with `w` that makes `y`.
pub(crate) fn work(w: Weight, y: Tensor, counts: Counts) -> Work {
    let (t, n, k) = (u64::from(y.shape.rows_at(counts)), u64::from(w.rows), u64::from(w.cols));
    let weight_bytes = n * w.ty.row_bytes(w.cols as usize).unwrap_or(0) as u64;
    Work { flops: 2 * t * n * k, bytes: weight_bytes + 4 * t * (n + k), weight_bytes }
}

impl Reference for Matmul {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        host.matmul(self.w, host.f32(self.x), &mut y);
        host.put(self.y, y);
    }
}

kernel! {
    MATMUL: "matmul",
    wgsl: ["matmul/matmul.wgsl", tile, quads],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight, bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths; few tiles, and many.
        QUADS: "matmul" { tile: choose ["matmul/pieces/tile_fours.wgsl"], quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_tail" { tile: choose ["matmul/pieces/tile_fours.wgsl"], quads: choose ["shared/x4_tail.wgsl"] },
        MANY_QUADS: "matmul_many" needs { threads: 64, workgroup_bytes: 10240 } {
            tile: choose ["matmul/pieces/tile_eights.wgsl"],
            quads: choose ["shared/x4.wgsl"],
        },
        MANY_TAIL: "matmul_many_tail" needs { threads: 64, workgroup_bytes: 10240 } {
            tile: choose ["matmul/pieces/tile_eights.wgsl"],
            quads: choose ["shared/x4_tail.wgsl"],
        },
    },
}

/// Rows of activations and of weights per workgroup.
pub(crate) const TILE: u32 = 64;

/// The dispatches of a product of several rows, one for each part of the weight.
pub(crate) fn lower(op: &Product, cx: &Lower<'_>) -> Vec<Dispatch> {
    let Weight { ty, rows: n, cols: k, .. } = op.w;
    let one = |(part, range): (usize, std::ops::Range<u32>)| {
        let w = Arg::Weight(op.w, part as u32);
        let bind = Bind { x: op.x.into(), w, bias: op.bias.into(), y: op.y.into() };
        let rows = op.x.shape.rows;
        let has_bias = u32::from(op.bias.is_some());
        let params = Params { k, n, rows, row_base: range.start, row_count: range.len() as u32, has_bias };
        let across = (range.len() as u32).div_ceil(TILE);
        let [few, many] = if k % 4 == 0 { [&QUADS, &MANY_QUADS] } else { [&TAIL, &MANY_TAIL] };
        let variant =
            if across * rows.div_ceil(TILE) < MATMUL_MANY_TILES * cx.caps.table.workgroups { few } else { many };
        bind.dispatch(variant, params, Grid::Tiles { lead: op.x.shape, tile: TILE, x: across })
    };
    parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
}
