//! Derivative of attention by its queries.

use super::attention_lse::{Attended, of_precision};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::lower::attention::attention_backward_q_flash as flash;
use crate::lower::attention::tile32::{SLOPE, rounded};
use crate::lower::pack::pack_f16::unpacked;
use crate::platform::in_parallel;
use std::borrow::Cow;

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
    /// If `dy` is in f16, the scales of its rows. The planner packs it, as
    /// [`pack_f16`](crate::lower::pack::pack_f16) does.
    pub dy_scales: Option<Tensor>,
    pub stats: Tensor,
    pub dq: Tensor,
}

/// dq[t, n] = sum_s ds k\[s\] with ds = p (dy[t, n] . v\[s\] - delta) score', from the derivative
/// `dy` [T, N, H] by the result of the attention `of` and `stats` [T, N, 2] as
/// [`attention_delta`](super::attention_delta()) made them; returns [T, N, H], f32. (Dao 2023,
/// arXiv 2307.08691, algorithm 2.)
pub fn attention_backward_q(rec: &mut Recorder<impl From<AttentionBackwardQ>>, of: Attended, dy: Tensor, stats: Tensor) -> Tensor {
    assert_eq!((dy.shape, stats.shape.heads), (of.q.shape, of.q.shape.heads), "attention_backward_q of unequal shapes");
    let dq = rec.make(of.q.shape);
    rec.push(AttentionBackwardQ { of, dy, dy_scales: None, stats, dq });
    dq
}

impl Operation for AttentionBackwardQ {
    fn io(&self) -> Io {
        let Attended { q, k, v, spans, step_rows, .. } = self.of;
        Io { reads: [q, k, v, self.dy, self.stats, spans, step_rows].into_iter().chain(self.dy_scales).collect(), writes: vec![self.dq] }
    }
}

impl Lowering for AttentionBackwardQ {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if let Some(scales) = self.dy_scales {
            return vec![flash::dispatch(self, scales, flash::variant(&self.of, cx.caps).expect("packed for this device"))];
        }
        let [q, k, v, spans] = [self.of.q, self.of.k, self.of.v, self.of.spans].map(Into::into);
        let [heads, kv_heads, head_dim, rows, causal, window] = self.of.words();
        let [scale, softcap] = self.of.factors();
        let params = Params { heads, kv_heads, head_dim, rows, causal, window, scale, softcap };
        let bind = Bind { q, k, v, dy: self.dy.into(), stats: self.stats.into(), spans, dq: self.dq.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.of.q.shape, per_row: heads })]
    }
}

impl Reference for AttentionBackwardQ {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dq = host.take(self.dq);
        let (spec, seen, width) = (self.of.spec(), self.of.seen(host.u32(self.of.spans)), self.of.q.shape.width() as usize);
        let [q, k, v] = [self.of.q, self.of.k, self.of.v].map(|t| of_precision(host.f32(t), self.dy_scales.is_some()));
        let scales = self.dy_scales.map(|scales| host.f32(scales));
        let dy = scales.map_or_else(|| host.f32(self.dy).into(), |scales| Cow::from(unpacked(scales, host.u32(self.dy), width, 0)));
        let stats = host.f32(self.stats);
        in_parallel(&mut dq, width, |t, dq| {
            let of = [&q[t * width..][..width], &k, &v, &dy[t * width..][..width], &stats[2 * t * spec.heads..][..2 * spec.heads]];
            match scales.map(|scales| if scales[t] == 0.0 { 1.0 } else { f64::from(scales[t]) }) {
                None => cpu_ref::attention_backward_q(&spec, of, seen[t].clone(), dq),
                Some(scale) => cpu_ref::attention_backward_q_rounded(&spec, of, seen[t].clone(), |ds| rounded(ds, SLOPE * scale), dq),
            }
        });
        host.put(self.dq, dq);
    }
}
