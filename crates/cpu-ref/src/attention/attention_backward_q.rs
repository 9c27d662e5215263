//! Derivative of attention by its queries.

use super::attention::AttentionSpec;
use super::attention_lse::score;
use crate::{check, dot::dot};
use std::ops::Range;

/// The derivative of attention by a query row: `dq[n] = sum_s ds[n, s] k[s, g]` over the keys
/// `visible`, with `ds = p (dy[n] . v[s, g] - delta[n]) score'` and `p = exp(score - lse[n])`.
///
/// `q`, `dy` and `dq [heads, head_dim]`; `k` and `v [S, kv_heads, head_dim]`; `stats [heads, 2]` as
/// [`attention_delta`](super::attention_delta::attention_delta) made them.
pub fn attention_backward_q(spec: &AttentionSpec, operands: [&[f32]; 5], visible: Range<usize>, dq: &mut [f32]) {
    attention_backward_q_rounded(spec, operands, visible, |ds| ds, dq);
}

/// The derivative of [`attention_backward_q`] with `round(ds)` instead of each `ds`. Kernels that
/// multiply `ds` in f16 are compared with this derivative.
pub fn attention_backward_q_rounded(
    spec: &AttentionSpec,
    [q, k, v, dy, stats]: [&[f32]; 5],
    visible: Range<usize>,
    round: impl Fn(f64) -> f64,
    dq: &mut [f32],
) {
    let (dim, width) = (spec.head_dim, spec.kv_heads * spec.head_dim);
    let group = check::rows("attention_backward_q: heads", spec.heads, spec.kv_heads);
    check::len("attention_backward_q: q", q.len(), spec.heads * dim);
    check::len("attention_backward_q: dy", dy.len(), q.len());
    check::len("attention_backward_q: dq", dq.len(), q.len());
    check::len("attention_backward_q: v", v.len(), k.len());
    for (n, dq) in dq.chunks_exact_mut(dim).enumerate() {
        let (q, dy) = (&q[n * dim..][..dim], &dy[n * dim..][..dim]);
        let mut sums = vec![0.0f64; dim];
        for s in visible.clone() {
            let at = s * width + n / group * dim..s * width + (n / group + 1) * dim;
            let (score, slope) = score(spec, q, &k[at.clone()]);
            let p = (score - f64::from(stats[2 * n])).exp();
            let ds = round(p * (dot(dy, &v[at.clone()]) - f64::from(stats[2 * n + 1])) * slope);
            sums.iter_mut().zip(&k[at]).for_each(|(sum, &k)| *sum += ds * f64::from(k));
        }
        dq.iter_mut().zip(&sums).for_each(|(dq, &sum)| *dq = sum as f32);
    }
}
