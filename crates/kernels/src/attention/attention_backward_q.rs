//! Derivative of attention by its queries.

use super::attention::Attend;
use super::attention_lse::Attended;
use super::fused::window;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::platform::in_turns;
use cpu_ref::Mask;
use gguf::BoxFuture;

kernel! {
    ATTENTION_BACKWARD_Q: "attention_backward_q",
    wgsl: [
        "attention/attention_backward_q.wgsl", "attention/pieces/span_of_row.wgsl", "attention/pieces/score_slope.wgsl",
        "shared/grid.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind { q: Read, k: Read, v: Read, dy: Read, stats: Read, spans: Read, dq: Write },
    cpu: cpu_ref::attention_backward_q,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 6656 },
}

/// dq = the derivative of attention by its queries.
#[derive(Clone, Debug)]
pub struct AttentionBackwardQ {
    pub of: Attended,
    pub dy: Tensor,
    pub stats: Tensor,
    pub dq: Tensor,
}

parameters! { AttentionBackwardQ: of }

/// dq[t, n] = sum_s ds k\[s\] with ds = p (dy[t, n] . v\[s\] - delta) score', from the derivative
/// `dy` [T, N, H] by the result of the attention `of` and `stats` [T, N, 2] as
/// [`attention_delta`](crate::ops::backward::attention_delta()) made them; returns [T, N, H], f32.
/// (Dao 2023, arXiv 2307.08691, algorithm 2.)
pub fn attention_backward_q(
    rec: &mut Recorder<impl From<AttentionBackwardQ>>,
    of: Attended,
    dy: Tensor,
    stats: Tensor,
) -> Tensor {
    assert_eq!((dy.shape, stats.shape.heads), (of.q.shape, of.q.shape.heads), "attention_backward_q of unequal shapes");
    let dq = rec.make(of.q.shape);
    rec.push(AttentionBackwardQ { of, dy, stats, dq });
    dq
}

impl Operation for AttentionBackwardQ {
    fn io(&self) -> Io {
        let Attended { q, k, v, spans, .. } = self.of;
        Io { reads: vec![q, k, v, self.dy, self.stats, spans], writes: vec![self.dq] }
    }
}

impl Lowering for AttentionBackwardQ {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Attended { q, k, v, kv_heads, attend, spans, step_rows: _ } = self.of;
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
        let grid = Grid::PerRow { lead: q.shape, per_row: q.shape.heads };
        let [q, k, v, dy, stats, spans, dq] = [q, k, v, self.dy, self.stats, spans, self.dq].map(Into::into);
        vec![Bind { q, k, v, dy, stats, spans, dq }.dispatch(params, grid)]
    }
}

impl Reference for AttentionBackwardQ {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let operands = [self.of.q, self.of.k, self.of.v, self.dy].map(|t| host.f32(t));
            let dq = self.of_operands(host, operands, |_, ds| ds).await;
            host.put(self.dq, dq);
        })
    }
}

impl AttentionBackwardQ {
    /// The derivative, from these q, k, v and dy, with `round(t, ds)` instead of each ds of row t.
    pub(crate) async fn of_operands(
        &self,
        host: &Host<'_>,
        [q, k, v, dy]: [&[f32]; 4],
        round: impl Fn(usize, f64) -> f64 + Send + Sync,
    ) -> Vec<f32> {
        let (spec, seen, width) =
            (self.of.spec(), self.of.seen(host.u32(self.of.spans)), self.of.q.shape.width() as usize);
        let (stats, mut dq) = (host.f32(self.stats), vec![0.0; q.len()]);
        let row = |t: usize, dq: &mut [f32]| {
            let of = [
                &q[t * width..][..width],
                k,
                v,
                &dy[t * width..][..width],
                &stats[2 * t * spec.heads..][..2 * spec.heads],
            ];
            cpu_ref::attention_backward_q_rounded(&spec, of, seen[t].clone(), |ds| round(t, ds), dq);
        };
        in_turns(&mut dq, width, row).await;
        dq
    }
}
