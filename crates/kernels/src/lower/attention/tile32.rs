//! The log-sum-exp and the derivatives of attention of many rows, in f16 in tiles of 32 queries,
//! through cooperative matrices. The planner makes them.

use super::{attention_backward_kv_flash, attention_backward_q_flash, attention_lse_flash};
use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use crate::lower::pack::pack_f16::unpacked;
use crate::ops::backward::{Attended, AttentionBackwardKv, AttentionBackwardQ, AttentionLse, Backward};
use half::f16;

/// An operation in tiles. The `dy` of a derivative is in f16, divided by the scales of its rows, as
/// [`pack_f16`](crate::lower::pack::pack_f16) packs it.
#[derive(Clone, Debug)]
pub enum Tile32 {
    Lse(AttentionLse),
    Q { op: AttentionBackwardQ, dy_scales: Tensor },
    Kv { op: AttentionBackwardKv, dy_scales: Tensor },
}

/// The operation in tiles, if a kernel takes it on this device. `pack` gives the scales and the
/// halves of a value.
pub fn tiled(op: &Backward, caps: &Caps, pack: impl FnOnce(Tensor) -> (Tensor, Tensor)) -> Option<Tile32> {
    Some(match op {
        Backward::AttentionLse(op) => attention_lse_flash::variant(&op.of, caps).map(|_| Tile32::Lse(op.clone()))?,
        Backward::AttentionBackwardQ(op) => {
            attention_backward_q_flash::variant(&op.of, caps)?;
            let (dy_scales, dy) = pack(op.dy.flat());
            Tile32::Q { op: AttentionBackwardQ { dy, ..op.clone() }, dy_scales }
        }
        Backward::AttentionBackwardKv(op) => {
            attention_backward_kv_flash::variant(&op.of, caps)?;
            let (dy_scales, dy) = pack(op.dy.flat());
            Tile32::Kv { op: AttentionBackwardKv { dy, ..op.clone() }, dy_scales }
        }
        _ => return None,
    })
}

impl Tile32 {
    /// The name of the function that records the operation.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Lse(_) => "attention_lse",
            Self::Q { .. } => "attention_backward_q",
            Self::Kv { .. } => "attention_backward_kv",
        }
    }
}

impl Operation for Tile32 {
    fn io(&self) -> Io {
        let (Io { mut reads, writes }, more) = match self {
            Self::Lse(op) => (op.io(), vec![op.of.step_rows]),
            Self::Q { op, dy_scales } => (op.io(), vec![*dy_scales, op.of.step_rows]),
            Self::Kv { op, dy_scales } => (op.io(), vec![*dy_scales, op.of.step_rows]),
        };
        reads.extend(more);
        Io { reads, writes }
    }

    fn work(&self, counts: Counts) -> Work {
        match self {
            Self::Lse(op) => op.work(counts),
            Self::Q { op, .. } => op.work(counts),
            Self::Kv { op, .. } => op.work(counts),
        }
    }
}

impl Lowering for Tile32 {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let dispatch = match self {
            Self::Lse(op) => attention_lse_flash::lower(op, cx),
            Self::Q { op, dy_scales } => attention_backward_q_flash::lower(op, *dy_scales, cx),
            Self::Kv { op, dy_scales } => attention_backward_kv_flash::lower(op, *dy_scales, cx),
        };
        vec![dispatch]
    }
}

impl Reference for Tile32 {
    /// The operation with its operands, derivatives by scores and weights in f16.
    fn reference(&self, host: &mut Host<'_>) {
        match self {
            Self::Lse(op) => {
                let [q, k] = [op.of.q, op.of.k].map(|t| halves(host.f32(t)));
                let y = op.of_operands(host, [&q, &k]);
                host.put(op.y, y);
            }
            Self::Q { op, dy_scales } => {
                let (of, scales) = (operands(host, &op.of, op.dy, *dy_scales), host.f32(*dy_scales));
                let scale = |t: usize| if scales[t] == 0.0 { 1.0 } else { f64::from(scales[t]) };
                let dq = op.of_operands(host, of.each_ref().map(Vec::as_slice), |t, ds| rounded(ds, SLOPE * scale(t)));
                host.put(op.dq, dq);
            }
            Self::Kv { op, dy_scales } => {
                let (of, scales) = (operands(host, &op.of, op.dy, *dy_scales), host.f32(*dy_scales));
                let most = Some(scales.iter().copied().fold(0.0, f32::max)).filter(|most| *most > 0.0).map_or(1.0, f64::from);
                // A row of zeros has no weight.
                let weight = |t: usize, p| if scales[t] == 0.0 { 0.0 } else { rounded(p, WEIGHT * most / f64::from(scales[t])) };
                let round = |t, [ds, p]: [f64; 2]| [rounded(ds, SLOPE * most), weight(t, p)];
                let [dk, dv] = op.of_operands(host, of.each_ref().map(Vec::as_slice), round);
                host.put(op.dk, dk);
                host.put(op.dv, dv);
            }
        }
    }
}

/// q, k, v and dy as the kernels multiply them.
fn operands(host: &Host<'_>, of: &Attended, dy: Tensor, dy_scales: Tensor) -> [Vec<f32>; 4] {
    let [q, k, v] = [of.q, of.k, of.v].map(|t| halves(host.f32(t)));
    [q, k, v, unpacked(host.f32(dy_scales), host.u32(dy), of.q.shape.width() as usize, 0)]
}

/// The powers of two that kernels divide derivatives by scores and weights by, beside the scale of
/// their row, before they round them to f16.
const SLOPE: f64 = 1024.0;
const WEIGHT: f64 = 1.0 / 32768.0;

/// Queries of a tile: rows of the step times the heads that share a kv head.
pub(super) const QUERIES: u32 = 32;

/// Smallest number of rows: a cooperative matrix has 16.
const LEAST_ROWS: u32 = 16;

/// The variants of a kernel, by the length of a head.
pub(super) type ByHead = [(u32, &'static Variant); 4];

/// The variant for these rows, if the device runs it and a tile holds a row.
pub(super) fn variant(of: &Attended, by_head: &ByHead, caps: &Caps) -> Option<&'static Variant> {
    let (shape, group) = (of.q.shape, of.q.shape.heads / of.kv_heads);
    let (_, variant) = by_head.iter().find(|(head, _)| *head == shape.dim)?;
    (shape.rows >= LEAST_ROWS && group <= QUERIES && variant.fits(caps)).then_some(*variant)
}

/// `x` as a cooperative matrix holds it, which has no infinities: in f16, as a multiple of `unit`.
fn rounded(x: f64, unit: f64) -> f64 {
    let largest = f64::from(f16::MAX);
    f16::from_f64((x / unit).clamp(-largest, largest)).to_f64() * unit
}

/// Rows that kernels convert to f16 while they stage them.
fn halves(rows: &[f32]) -> Vec<f32> {
    rows.iter().map(|&x| rounded(f64::from(x), 1.0) as f32).collect()
}
