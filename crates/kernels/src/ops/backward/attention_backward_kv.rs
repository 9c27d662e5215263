//! Derivatives of attention by its keys and values.

use super::attention_lse::{Attended, of_precision};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};
use crate::lower::attention::attention_backward_kv_flash as flash;
use crate::lower::attention::tile32::{SLOPE, WEIGHT, rounded};
use crate::lower::pack::pack_f16::unpacked;
use crate::platform::in_parallel;
use std::borrow::Cow;

kernel! {
    ATTENTION_BACKWARD_KV: "attention_backward_kv",
    wgsl: [
        "attention/attention_backward_kv.wgsl", "attention/pieces/span_of_row.wgsl", "attention/pieces/score_slope.wgsl",
        "shared/grid.wgsl",
    ],
    params: Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 },
    bindings: Bind { q: Read, k: Read, v: Read, dy: Read, stats: Read, spans: Read, dk: Write, dv: Write },
    cpu: cpu_ref::attention_backward_kv,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 9216 },
}

/// dk, dv = the derivatives of attention by its keys and values.
#[derive(Clone, Debug)]
pub struct AttentionBackwardKv {
    pub of: Attended,
    pub dy: Tensor,
    /// If `dy` is in f16, the scales of its rows. The planner packs it, as
    /// [`pack_f16`](crate::lower::pack::pack_f16) does.
    pub dy_scales: Option<Tensor>,
    pub stats: Tensor,
    pub dk: Tensor,
    pub dv: Tensor,
}

/// dk\[s\] = sum_t,n ds q[t, n] and dv\[s\] = sum_t,n p dy[t, n] over the rows t that see key s,
/// with the operands of [`attention_backward_q`](super::attention_backward_q()); returns two [T, K,
/// H], f32.
pub fn attention_backward_kv(rec: &mut Recorder<impl From<AttentionBackwardKv>>, of: Attended, dy: Tensor, stats: Tensor) -> [Tensor; 2] {
    assert_eq!((dy.shape, stats.shape.heads), (of.q.shape, of.q.shape.heads), "attention_backward_kv of unequal shapes");
    let [dk, dv] = [rec.make(of.k.shape), rec.make(of.v.shape)];
    rec.push(AttentionBackwardKv { of, dy, dy_scales: None, stats, dk, dv });
    [dk, dv]
}

impl Operation for AttentionBackwardKv {
    fn io(&self) -> Io {
        let Attended { q, k, v, spans, step_rows, .. } = self.of;
        Io {
            reads: [q, k, v, self.dy, self.stats, spans, step_rows].into_iter().chain(self.dy_scales).collect(),
            writes: vec![self.dk, self.dv],
        }
    }
}

impl Lowering for AttentionBackwardKv {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        if let Some(scales) = self.dy_scales {
            return vec![flash::dispatch(self, scales, flash::variant(&self.of, cx.caps).expect("packed for this device"))];
        }
        let [q, k, v, spans] = [self.of.q, self.of.k, self.of.v, self.of.spans].map(Into::into);
        let [heads, kv_heads, head_dim, rows, causal, window] = self.of.words();
        let [scale, softcap] = self.of.factors();
        let params = Params { heads, kv_heads, head_dim, rows, causal, window, scale, softcap };
        let [dy, stats, dk, dv] = [self.dy, self.stats, self.dk, self.dv].map(Into::into);
        let grid = Grid::PerRow { lead: self.of.k.shape, per_row: kv_heads };
        vec![Bind { q, k, v, dy, stats, spans, dk, dv }.dispatch(params, grid)]
    }
}

impl Reference for AttentionBackwardKv {
    fn reference(&self, host: &mut Host<'_>) {
        let (spec, seen, width) = (self.of.spec(), self.of.seen(host.u32(self.of.spans)), self.of.k.shape.width() as usize);
        let [q, k, v] = [self.of.q, self.of.k, self.of.v].map(|t| of_precision(host.f32(t), self.dy_scales.is_some()));
        let scales = self.dy_scales.map(|scales| host.f32(scales));
        let query_width = self.of.q.shape.width() as usize;
        let dy = scales.map_or_else(|| host.f32(self.dy).into(), |scales| Cow::from(unpacked(scales, host.u32(self.dy), query_width, 0)));
        let stats = host.f32(self.stats);
        let most = scales.map(|scales| scales.iter().copied().fold(0.0, f32::max)).filter(|most| *most > 0.0).map_or(1.0, f64::from);
        // Both results of a row in one piece, so that rows are computed in parallel.
        let mut both = vec![0.0; 2 * k.len()];
        in_parallel(&mut both, 2 * width, |s, both| {
            let own = s * width..(s + 1) * width;
            let seen_by = (0..seen.len()).filter(|&t| seen[t].contains(&s));
            let (dk, dv) = both.split_at_mut(width);
            let of = [&*q, &k[own.clone()], &v[own], &*dy, stats];
            let Some(scales) = scales else { return cpu_ref::attention_backward_kv(&spec, of, seen_by, [dk, dv]) };
            // A row of zeros has no weight.
            let weight = |t: usize, p: f64| if scales[t] == 0.0 { 0.0 } else { rounded(p, WEIGHT * most / f64::from(scales[t])) };
            let round = |t, [ds, p]: [f64; 2]| [rounded(ds, SLOPE * most), weight(t, p)];
            cpu_ref::attention_backward_kv_rounded(&spec, of, seen_by, round, [dk, dv]);
        });
        let half = |from: usize| both.chunks_exact(width).skip(from).step_by(2).flatten().copied().collect::<Vec<f32>>();
        let (dk, dv) = (half(0), half(1));
        host.put(self.dk, dk);
        host.put(self.dv, dv);
    }
}
