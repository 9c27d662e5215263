//! The logarithm of the sum of the exponentials of a query's scores.

use super::attention::AttentionSpec;
use crate::elementwise::softcap::softcap_f64;
use crate::{check, dot::dot};
use std::ops::Range;

/// The score of a query and a key, and its derivative by their product.
pub(crate) fn score(spec: &AttentionSpec, q: &[f32], k: &[f32]) -> (f64, f64) {
    let score = spec.scale * dot(q, k);
    match spec.softcap {
        None => (score, spec.scale),
        Some(cap) => {
            let capped = softcap_f64(score, cap);
            (capped, spec.scale * (1.0 - (capped / cap).powi(2)))
        }
    }
}

/// `lse[n] = ln sum_s exp(softcap(scale q[n] . k[s, g]))` over the keys `visible`, with the kv head
/// g of query head n. `q [heads, head_dim]`, `k [S, kv_heads, head_dim]`, `lse [heads]`. A query
/// that sees no key gives zeros. (Dao et al. 2022, arXiv 2205.14135, algorithm 1.)
pub fn attention_lse(spec: &AttentionSpec, q: &[f32], k: &[f32], visible: Range<usize>, lse: &mut [f32]) {
    let (dim, width) = (spec.head_dim, spec.kv_heads * spec.head_dim);
    let group = check::rows("attention_lse: heads", spec.heads, spec.kv_heads);
    check::len("attention_lse: q", q.len(), spec.heads * dim);
    check::len("attention_lse: lse", lse.len(), spec.heads);
    for (n, (q, lse)) in q.chunks_exact(dim).zip(lse).enumerate() {
        let scores: Vec<f64> =
            visible.clone().map(|s| score(spec, q, &k[s * width + n / group * dim..][..dim]).0).collect();
        let largest = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let sum: f64 = scores.iter().map(|s| (s - largest).exp()).sum();
        *lse = if scores.is_empty() { 0.0 } else { (largest + sum.ln()) as f32 };
    }
}
