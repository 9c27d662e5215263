//! The log-sum-exp and the derivatives of attention of many rows, in f16 in tiles of 32 queries,
//! through cooperative matrices. The planner makes them.

use super::attention::Attend;
use super::attention_backward_kv::AttentionBackwardKv;
use super::attention_backward_q::AttentionBackwardQ;
use super::attention_lse::{Attended, AttentionLse};
use super::{attention_backward_kv_flash, attention_backward_q_flash, attention_lse_flash};
use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, Tensor};
use crate::kernel::Variant;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use crate::norm::pack_f16::unpacked;
use half::f16;

/// An operation in tiles. The `v` and the `dy` of a derivative are in f16, divided by the scales of
/// their rows, as [`pack_f16`](crate::norm::pack_f16) packs them.
#[derive(Clone, Debug)]
pub enum Tile32 {
    Lse(AttentionLse),
    Q { op: AttentionBackwardQ, scales: [Tensor; 2] },
    Kv { op: AttentionBackwardKv, scales: [Tensor; 2] },
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
            Self::Q { op, scales: [v, dy] } => (op.io(), vec![*v, *dy, op.of.step_rows]),
            Self::Kv { op, scales: [v, dy] } => (op.io(), vec![*v, *dy, op.of.step_rows]),
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
            Self::Q { op, scales } => attention_backward_q_flash::lower(op, *scales, cx),
            Self::Kv { op, scales } => attention_backward_kv_flash::lower(op, *scales, cx),
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
                let y = in_one_turn(op.of_operands(host, [&q, &k]));
                host.put(op.y, y);
            }
            Self::Q { op, scales } => {
                let (of, unit) = (operands(host, &op.of, op.dy, *scales), slope(&op.of) * most(host, scales[0]));
                let scales = host.f32(scales[1]);
                let scale = |t: usize| if scales[t] == 0.0 { 1.0 } else { f64::from(scales[t]) };
                let dq = in_one_turn(
                    op.of_operands(host, of.each_ref().map(Vec::as_slice), |t, ds| rounded(ds, unit * scale(t))),
                );
                host.put(op.dq, dq);
            }
            Self::Kv { op, scales } => {
                let (of, unit) = (operands(host, &op.of, op.dy, *scales), slope(&op.of) * most(host, scales[0]));
                let (scales, most) = (host.f32(scales[1]), most(host, scales[1]));
                // A row of zeros has no weight.
                let weight =
                    |t: usize, p| if scales[t] == 0.0 { 0.0 } else { rounded(p, WEIGHT * most / f64::from(scales[t])) };
                let round = |t, [ds, p]: [f64; 2]| [rounded(ds, unit * most), weight(t, p)];
                let [dk, dv] = in_one_turn(op.of_operands(host, of.each_ref().map(Vec::as_slice), round));
                host.put(op.dk, dk);
                host.put(op.dv, dv);
            }
        }
    }
}

/// q, k, v and dy as the kernels multiply them.
fn operands(host: &Host<'_>, of: &Attended, dy: Tensor, [v_scales, dy_scales]: [Tensor; 2]) -> [Vec<f32>; 4] {
    let [q, k] = [of.q, of.k].map(|t| halves(host.f32(t)));
    let packed = |scales, t, width| unpacked(host.f32(scales), host.u32(t), width as usize, 0);
    [q, k, packed(v_scales, of.v, of.k.shape.width()), packed(dy_scales, dy, of.q.shape.width())]
}

/// The largest scale of a row, 1 if all are rows of zeros.
fn most(host: &Host<'_>, scales: Tensor) -> f64 {
    let largest = host.f32(scales).iter().copied().fold(0.0, f32::max);
    if largest == 0.0 { 1.0 } else { f64::from(largest) }
}

/// The powers of two that kernels divide derivatives by scores and weights by, beside the scales of
/// rows, before they round them to f16.
const SLOPE: f64 = 4_194_304.0;
const WEIGHT: f64 = 1.0 / 32768.0;

/// The power of two for derivatives by scores, times the scale of scores. A softcap is a factor of
/// the derivatives themselves.
fn slope(of: &Attended) -> f64 {
    let Attend { mask: _, scale, softcap: _ } = of.attend;
    SLOPE * f64::from(scale)
}

/// Queries of a tile: rows of the step times the heads that share a kv head.
pub(super) const QUERIES: u32 = 32;

/// Smallest number of rows: a cooperative matrix has 16.
const LEAST_ROWS: u32 = 16;

/// The variants of a kernel, by the length of a head.
pub(super) type ByHead = [(u32, &'static Variant); 4];

/// The variant for these rows, if the device runs it and a tile holds a row.
pub(super) fn variant(of: &Attended, by_head: &ByHead, caps: &Caps) -> Option<&'static Variant> {
    // Tiles serve every mask, scale and softcap.
    let Attend { mask: _, scale: _, softcap: _ } = of.attend;
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
