//! Product in f32 of several rows, normed in the kernel or not, with an f32 weight of few rows.

use super::matmul;
use super::problem::Part;
use super::product::Product;
use crate::caps::Caps;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Arg, Dispatch, Grid};
use crate::kernel::split::parts;
use gguf::GgmlType;

kernel! {
    MATMUL_NARROW: "matmul_narrow",
    wgsl: ["matmul/matmul_narrow.wgsl", "shared/norm_share.wgsl", "shared/lanes.wgsl", "shared/lanes_near.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, has_norm: u32, has_weight: u32, eps: f32, scale: f32, exchange: u32 },
    bindings: Bind { h: Read, w: Read, u: Read, y: Write },
    cpu: cpu_ref::matmul,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4096 },
}

/// Rows of activations per workgroup.
const ROWS: u32 = 8;

/// Weight rows per workgroup.
const WEIGHT_ROWS: u32 = 8;

/// Whether the kernel takes `rows` rows with the weight on this device: where tiles of 64 x 64
/// results would not keep the device busy. The router of Qwen3-30B-A3B has 128 rows: 64 rows of
/// activations take 154 us in two such tiles.
#[must_use]
pub fn serves(w: Weight, rows: u32, caps: &Caps) -> bool {
    let tiles = rows.div_ceil(matmul::TILE) * w.rows.div_ceil(matmul::TILE);
    let whole = w.ty == GgmlType::F32 && w.cols.is_multiple_of(4) && parts(caps, w.ty, w.rows, w.cols).len() == 1;
    whole && tiles < caps.table.workgroups && MATMUL_NARROW.fits(caps)
}

/// The dispatch of a plain product, whose weight has one part.
pub fn lower(part: &Part<'_>, _: &'static Variant) -> Dispatch {
    let Product { w, x, y, .. } = *part.product;
    let (k, n, rows, exchange) = (w.cols, w.rows, x.shape.rows, part.caps.subgroup_size);
    dispatch(x, w, None, y, Params { k, n, rows, has_norm: 0, has_weight: 0, eps: 0.0, scale: 1.0, exchange })
}

/// The dispatch of y = scale x w^T with x = h / sqrt(mean(h^2) + eps) * u.
pub fn lower_normed(
    [h, y]: [Tensor; 2],
    w: Weight,
    u: Option<Weight>,
    [eps, scale]: [f32; 2],
    caps: &Caps,
) -> Dispatch {
    let (k, n, rows, exchange) = (w.cols, w.rows, h.shape.rows, caps.subgroup_size);
    let has_weight = u32::from(u.is_some());
    dispatch(h, w, u, y, Params { k, n, rows, has_norm: 1, has_weight, eps, scale, exchange })
}

fn dispatch(h: Tensor, w: Weight, u: Option<Weight>, y: Tensor, params: Params) -> Dispatch {
    let bind = Bind { h: h.into(), w: w.into(), u: Arg::from(u), y: y.into() };
    bind.dispatch(params, Grid::Tiles { lead: h.shape, tile: ROWS, x: w.rows.div_ceil(WEIGHT_ROWS) })
}
