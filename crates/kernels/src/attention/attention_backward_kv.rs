//! Derivatives of attention by its keys and values.

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
    pub stats: Tensor,
    pub dk: Tensor,
    pub dv: Tensor,
}

parameters! { AttentionBackwardKv: of }

/// dk\[s\] = sum_t,n ds q[t, n] and dv\[s\] = sum_t,n p dy[t, n] over the rows t that see key s,
/// with the operands of [`attention_backward_q`](crate::ops::backward::attention_backward_q());
/// returns two [T, K, H], f32.
pub fn attention_backward_kv(
    rec: &mut Recorder<impl From<AttentionBackwardKv>>,
    of: Attended,
    dy: Tensor,
    stats: Tensor,
) -> [Tensor; 2] {
    assert_eq!(
        (dy.shape, stats.shape.heads),
        (of.q.shape, of.q.shape.heads),
        "attention_backward_kv of unequal shapes"
    );
    let [dk, dv] = [rec.make(of.k.shape), rec.make(of.v.shape)];
    rec.push(AttentionBackwardKv { of, dy, stats, dk, dv });
    [dk, dv]
}

impl Operation for AttentionBackwardKv {
    fn io(&self) -> Io {
        let Attended { q, k, v, spans, .. } = self.of;
        Io { reads: vec![q, k, v, self.dy, self.stats, spans], writes: vec![self.dk, self.dv] }
    }
}

impl Lowering for AttentionBackwardKv {
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
        let grid = Grid::PerRow { lead: k.shape, per_row: kv_heads };
        let [q, k, v, spans] = [q, k, v, spans].map(Into::into);
        let [dy, stats, dk, dv] = [self.dy, self.stats, self.dk, self.dv].map(Into::into);
        vec![Bind { q, k, v, dy, stats, spans, dk, dv }.dispatch(params, grid)]
    }
}

impl Reference for AttentionBackwardKv {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let operands = [self.of.q, self.of.k, self.of.v, self.dy].map(|t| host.f32(t));
            let [dk, dv] = self.of_operands(host, operands, |_, of| of).await;
            host.put(self.dk, dk);
            host.put(self.dv, dv);
        })
    }
}

impl AttentionBackwardKv {
    /// Both derivatives, from these q, k, v and dy, with `round(t, [ds, p])` instead of each ds and
    /// p of row t.
    pub(crate) async fn of_operands(
        &self,
        host: &Host<'_>,
        [q, k, v, dy]: [&[f32]; 4],
        round: impl Fn(usize, [f64; 2]) -> [f64; 2] + Send + Sync,
    ) -> [Vec<f32>; 2] {
        let (spec, seen, width) =
            (self.of.spec(), self.of.seen(host.u32(self.of.spans)), self.of.k.shape.width() as usize);
        let stats = host.f32(self.stats);
        // Both results of a row in one piece, so that rows are computed in parallel.
        let mut both = vec![0.0; 2 * k.len()];
        let row = |s: usize, both: &mut [f32]| {
            let own = s * width..(s + 1) * width;
            let seen_by = (0..seen.len()).filter(|&t| seen[t].contains(&s));
            let (dk, dv) = both.split_at_mut(width);
            let of = [q, &k[own.clone()], &v[own], dy, stats];
            cpu_ref::attention_backward_kv_rounded(&spec, of, seen_by, &round, [dk, dv]);
        };
        in_turns(&mut both, 2 * width, row).await;
        let half =
            |from: usize| both.chunks_exact(width).skip(from).step_by(2).flatten().copied().collect::<Vec<f32>>();
        [half(0), half(1)]
    }
}
