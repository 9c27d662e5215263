//! Product of rows with a weight matrix.

use super::problem::Part;
use super::product::work;
use crate::caps::table::measured::MATMUL_MANY_TILES;
use crate::elementwise::add::{Add, add};
use crate::elementwise::dropout::{Dropout, dropout};
use crate::elementwise::scale::{Scale, scale};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::{Dropped, LowRank, Recorder};
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Grid};
use gguf::BoxFuture;

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
values! { Matmul: x, w, y }

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

impl Reference for Matmul {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut y = host.take(self.y);
            host.matmul(self.w, host.f32(self.x), &mut y).await;
            host.put(self.y, y);
        })
    }
}

kernel! {
    MATMUL: "matmul",
    wgsl: ["matmul/matmul.wgsl", tile, quads],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 },
    bindings: Bind { x: Read, w: Weight(Any), bias: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths; few tiles, and many.
        QUADS: "matmul" { tile: choose ["matmul/pieces/tile_fours.wgsl"], quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_tail" only Blockless { tile: choose ["matmul/pieces/tile_fours.wgsl"], quads: choose ["shared/x4_tail.wgsl"] },
        MANY_QUADS: "matmul_many" needs { threads: 64, workgroup_bytes: 10240 } {
            tile: choose ["matmul/pieces/tile_eights.wgsl"],
            quads: choose ["shared/x4.wgsl"],
        },
        MANY_TAIL: "matmul_many_tail" needs { threads: 64, workgroup_bytes: 10240 } only Blockless {
            tile: choose ["matmul/pieces/tile_eights.wgsl"],
            quads: choose ["shared/x4_tail.wgsl"],
        },
    },
}

/// Rows of activations and of weights per workgroup.
pub(crate) const TILE: u32 = 64;

/// The variant for a part of a product.
pub(crate) fn form(part: &Part<'_>) -> &'static Variant {
    let tiles = part.rows.div_ceil(TILE) * part.product.x.shape.rows.div_ceil(TILE);
    let [few, many] = if part.product.w.cols.is_multiple_of(4) { [&QUADS, &MANY_QUADS] } else { [&TAIL, &MANY_TAIL] };
    if tiles < MATMUL_MANY_TILES * part.caps.table.workgroups { few } else { many }
}

/// The dispatch of a part of a product.
pub(crate) fn lower(part: &Part<'_>, variant: &'static Variant) -> Dispatch {
    let (x, w) = (part.product.x, part.product.w);
    let params = Params {
        k: w.cols,
        n: w.rows,
        rows: x.shape.rows,
        row_base: part.first,
        row_count: part.rows,
        has_bias: part.has_bias(),
    };
    let grid = Grid::Tiles { lead: x.shape, tile: TILE, x: part.rows.div_ceil(TILE) };
    Bind { x: x.into(), w: part.w(), bias: part.added, y: part.to.into() }.dispatch(variant, params, grid)
}
