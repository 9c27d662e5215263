//! The logarithm of each row's sum of exponentials in attention, which its derivatives read.

use super::attention::{Attend, Attention, Keys};
use super::fused::window;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::platform::in_turns;
use cpu_ref::{AttentionSpec, Mask};
use gguf::BoxFuture;
use std::ops::Range;

kernel! {
    ATTENTION_LSE: "attention_lse",
    wgsl: [
        "attention/attention_lse.wgsl", "attention/pieces/span_of_row.wgsl", "attention/pieces/score_slope.wgsl", "shared/grid.wgsl",
        "shared/reduce.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind { q: Read, k: Read, spans: Read, y: Write },
    cpu: cpu_ref::attention_lse,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 4608 },
}

/// An attention over the keys of the step, as its derivatives read it.
#[derive(Copy, Clone, Debug)]
pub struct Attended {
    pub q: Tensor,
    pub k: Tensor,
    pub v: Tensor,
    pub kv_heads: u32,
    pub attend: Attend,
    /// The step input [`Input::Spans`].
    pub spans: Tensor,
    /// The step input [`Input::Rows`], for kernels whose workgroups take several rows.
    pub step_rows: Tensor,
}

impl Attended {
    /// The derivatives' view of `attention`.
    ///
    /// # Panics
    /// When its keys are in a cache: only recordings of documents are differentiable.
    #[must_use]
    pub fn of<O>(rec: &mut Recorder<O>, attention: &Attention) -> Self {
        let Keys::Step { k, v, .. } = attention.keys else { panic!("derivatives of attention over a cache") };
        let [spans, step_rows] = [Input::Spans, Input::Rows].map(|input| rec.input(input));
        Self { q: attention.q, k, v, kv_heads: attention.kv_heads, attend: attention.attend, spans, step_rows }
    }

    /// The shape and scalars, for oracles. [`Attended::seen`] has the mask.
    pub(super) fn spec(&self) -> AttentionSpec {
        let Attend { mask: _, scale, softcap } = self.attend;
        AttentionSpec {
            heads: self.q.shape.heads as usize,
            kv_heads: self.kv_heads as usize,
            head_dim: self.q.shape.dim as usize,
            scale: f64::from(scale),
            softcap: softcap.map(f64::from),
        }
    }

    /// The keys that each row sees, from the words of the input.
    pub(super) fn seen(&self, spans: &[u32]) -> Vec<Range<usize>> {
        let seen = |(t, span): (usize, &[u32])| {
            let (first, bidirectional) = (span[0] as usize, self.attend.mask == Mask::Bidirectional);
            let end = if bidirectional { span[2] as usize } else { t + 1 };
            let range = self.attend.mask.visible(t.saturating_sub(first), end.saturating_sub(first));
            range.start + first..range.end + first
        };
        spans.chunks_exact(3).enumerate().map(seen).collect()
    }
}

/// y[t, n] = ln sum_s exp(score of q[t, n] and k\[s\]).
#[derive(Clone, Debug)]
pub struct AttentionLse {
    pub of: Attended,
    pub y: Tensor,
}

parameters! { AttentionLse: of }

/// The logarithm of the sum of the exponentials of the scores of each query row; returns [T, N],
/// f32.
pub fn attention_lse(rec: &mut Recorder<impl From<AttentionLse>>, of: Attended) -> Tensor {
    let y = rec.make(Shape { heads: 1, dim: of.q.shape.heads, ..of.q.shape });
    rec.push(AttentionLse { of, y });
    y
}

impl Operation for AttentionLse {
    fn io(&self) -> Io {
        Io { reads: vec![self.of.q, self.of.k, self.of.spans], writes: vec![self.y] }
    }
}

impl Lowering for AttentionLse {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Attended { q, k, v: _, kv_heads, attend, spans, step_rows: _ } = self.of;
        let Attend { mask, scale, softcap } = attend;
        let params = Params {
            heads: q.shape.heads,
            kv_heads,
            head_dim: q.shape.dim,
            rows: q.shape.rows,
            causal: u32::from(mask != Mask::Bidirectional),
            window: window(mask),
            scale,
            softcap: softcap.unwrap_or(0.0),
        };
        let bind = Bind { q: q.into(), k: k.into(), spans: spans.into(), y: self.y.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: q.shape, per_row: q.shape.heads })]
    }
}

impl Reference for AttentionLse {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let y = self.of_operands(host, [self.of.q, self.of.k].map(|t| host.f32(t))).await;
            host.put(self.y, y);
        })
    }
}

impl AttentionLse {
    /// The results, from these queries and keys.
    pub(crate) async fn of_operands(&self, host: &Host<'_>, [q, k]: [&[f32]; 2]) -> Vec<f32> {
        let (spec, seen, width) =
            (self.of.spec(), self.of.seen(host.u32(self.of.spans)), self.of.q.shape.width() as usize);
        let mut y = vec![0.0; seen.len() * spec.heads];
        let row =
            |t: usize, y: &mut [f32]| cpu_ref::attention_lse(&spec, &q[t * width..][..width], k, seen[t].clone(), y);
        in_turns(&mut y, spec.heads, row).await;
        y
    }
}
