//! What the kernels of attention's derivatives in tiles of 32 queries have in common: the rows that
//! they take, and f16 as they round to it.

use crate::caps::Caps;
use crate::kernel::Variant;
use crate::ops::backward::Attended;
use half::f16;

/// Queries of a tile: rows of the step times the heads that share a kv head.
pub(super) const QUERIES: u32 = 32;

/// Smallest number of rows: a cooperative matrix has 16.
const LEAST_ROWS: u32 = 16;

/// The powers of two that kernels divide derivatives by scores and weights by, beside the scale of
/// their row, before they round them to f16.
pub(crate) const SLOPE: f64 = 1024.0;
pub(crate) const WEIGHT: f64 = 1.0 / 32768.0;

/// The variants of a kernel, by the length of a head.
pub(super) type ByHead = [(u32, &'static Variant); 4];

/// The variant for these rows, if the device runs it and a tile holds a row.
pub(super) fn variant(of: &Attended, by_head: &ByHead, caps: &Caps) -> Option<&'static Variant> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    let (_, variant) = by_head.iter().find(|(head, _)| *head == shape.dim)?;
    (shape.rows >= LEAST_ROWS && group <= QUERIES && variant.fits(caps)).then_some(*variant)
}

/// `x` as a cooperative matrix holds it, which has no infinities: in f16, as a multiple of `unit`.
pub(crate) fn rounded(x: f64, unit: f64) -> f64 {
    let largest = f64::from(f16::MAX);
    f16::from_f64((x / unit).clamp(-largest, largest)).to_f64() * unit
}

/// Rows that kernels convert to f16 while they stage them.
pub(crate) fn halves(rows: &[f32]) -> Vec<f32> {
    rows.iter().map(|&x| rounded(f64::from(x), 1.0) as f32).collect()
}
