//! Scaled dot-product attention of one query row over cached keys and values.

use std::ops::Range;

use crate::elementwise::softcap::softcap_f64;
use crate::{check, dot::dot};

/// The keys that a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The keys at or before the query's position.
    Causal,
    /// The last n keys up to and including the query's own: 0 <= query - key < n (Beltagy et al.
    /// 2020, arXiv 2004.05150).
    Window(usize),
    /// Every key.
    Bidirectional,
}

impl Mask {
    /// The keys, out of `len`, that the query at `position` sees.
    pub fn visible(self, position: usize, len: usize) -> Range<usize> {
        let end = len.min(position + 1);
        match self {
            Mask::Causal => 0..end,
            Mask::Window(n) => (position + 1).saturating_sub(n).min(end)..end,
            Mask::Bidirectional => 0..len,
        }
    }
}

/// The shape and scalars of an attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSpec {
    /// Query heads N, a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads; query head n reads kv head n / (heads / kv_heads) (Ainslie et al. 2023,
    /// arXiv 2305.13245).
    pub kv_heads: usize,
    /// Elements per head.
    pub head_dim: usize,
    /// Multiplies every score before the cap.
    pub scale: f64,
    /// If present, scores become cap * tanh(score / cap) (Gemma 2, arXiv 2408.00118).
    pub softcap: Option<f64>,
}

/// `y[n] = sum_s softmax_s(softcap(scale * q[n] . k[s, g])) v[s, g]`, where g is the kv head of
/// query head n and s runs over `visible`.
///
/// `q` and `y [heads, head_dim]`; `k` and `v [S, kv_heads, head_dim]`. Scores, probabilities and
/// sums are f64. A query that sees no key gives zeros. Source: Vaswani et al. 2017, arXiv
/// 1706.03762, equation 1.
pub fn attention(spec: &AttentionSpec, q: &[f32], k: &[f32], v: &[f32], visible: Range<usize>, y: &mut [f32]) {
    attend(spec, q, k, v, visible, y, |scores| {
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.iter_mut().for_each(|score| *score = (*score - max).exp());
        scores.iter().sum()
    });
}

/// The attention whose weights `weigh` makes: it replaces the scores of all keys by their weights
/// and returns the sum that divides them.
pub(crate) fn attend(
    spec: &AttentionSpec,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    visible: Range<usize>,
    y: &mut [f32],
    weigh: impl Fn(&mut [f64]) -> f64,
) {
    let (dim, kv_width) = (spec.head_dim, spec.kv_heads * spec.head_dim);
    let group = check::rows("attention: heads", spec.heads, spec.kv_heads);
    check::len("attention: q", q.len(), spec.heads * dim);
    check::len("attention: y", y.len(), spec.heads * dim);
    check::len("attention: v", v.len(), k.len());
    let len = check::rows("attention: k", k.len(), kv_width);
    assert!(visible.start <= visible.end && visible.end <= len, "attention: keys {visible:?} of {len}");
    let mut weights = vec![0.0f64; visible.len()];
    let mut sums = vec![0.0f64; dim];
    for (head, (q, y)) in q.chunks_exact(dim).zip(y.chunks_exact_mut(dim)).enumerate() {
        let at = |s: usize| s * kv_width + head / group * dim..s * kv_width + (head / group + 1) * dim;
        for (weight, s) in weights.iter_mut().zip(visible.clone()) {
            let score = spec.scale * dot(q, &k[at(s)]);
            *weight = spec.softcap.map_or(score, |cap| softcap_f64(score, cap));
        }
        let total = weigh(&mut weights);
        sums.fill(0.0);
        for (weight, s) in weights.iter().zip(visible.clone()) {
            for (sum, &v) in sums.iter_mut().zip(&v[at(s)]) {
                *sum += weight * v as f64;
            }
        }
        for (y, sum) in y.iter_mut().zip(&sums) {
            *y = if visible.is_empty() { 0.0 } else { (sum / total) as f32 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AttentionSpec = AttentionSpec { heads: 1, kv_heads: 1, head_dim: 1, scale: 1.0, softcap: None };

    #[test]
    fn masks_at_their_edges() {
        assert_eq!(Mask::Causal.visible(0, 5), 0..1);
        assert_eq!(Mask::Causal.visible(4, 5), 0..5);
        assert_eq!(Mask::Window(3).visible(1, 9), 0..2);
        assert_eq!(Mask::Window(3).visible(2, 9), 0..3);
        assert_eq!(Mask::Window(3).visible(3, 9), 1..4);
        assert_eq!(Mask::Window(1).visible(6, 9), 6..7);
        assert_eq!(Mask::Bidirectional.visible(0, 5), 0..5);
        assert_eq!(Mask::Window(2).visible(9, 4), 4..4);
    }

    #[test]
    fn one_key_returns_its_value() {
        let spec = AttentionSpec { head_dim: 2, ..ONE };
        let mut y = [f32::NAN; 2];
        attention(&spec, &[5.0, -3.0], &[1.0, 1.0], &[0.25, -7.0], 0..1, &mut y);
        assert_eq!(y, [0.25, -7.0]);
    }

    #[test]
    fn scores_zero_and_ln_three_weigh_one_to_three() {
        let k = [0.0, 3f32.ln() / 2.0];
        let mut y = [f32::NAN];
        attention(&AttentionSpec { scale: 2.0, ..ONE }, &[1.0], &k, &[4.0, 8.0], 0..2, &mut y);
        assert!((y[0] - 7.0).abs() < 1e-6, "{y:?}");
    }

    #[test]
    fn the_softcap_comes_after_the_scale() {
        // 2 tanh(score / 2) = ln 3 at score = 2 atanh(ln 3 / 2). The key is divided by the scale of
        // 4.
        let score = 2.0 * (3f64.ln() / 2.0).atanh();
        let spec = AttentionSpec { scale: 4.0, softcap: Some(2.0), ..ONE };
        let mut y = [f32::NAN];
        attention(&spec, &[1.0], &[0.0, (score / 4.0) as f32], &[4.0, 8.0], 0..2, &mut y);
        assert!((y[0] - 7.0).abs() < 1e-6, "{y:?}");
    }

    #[test]
    fn equal_scores_average_the_visible_values_only() {
        let mut y = [f32::NAN];
        attention(&ONE, &[1.0], &[2.0; 5], &[100.0, 1.0, 2.0, 6.0, -100.0], 1..4, &mut y);
        assert_eq!(y, [3.0]);
    }

    #[test]
    fn two_query_heads_share_each_kv_head() {
        let spec = AttentionSpec { heads: 4, kv_heads: 2, ..ONE };
        // Two keys of two kv heads. Queries of +-1000 select one key each.
        let (k, v) = ([1.0, 1.0, -1.0, -1.0], [10.0, 20.0, 11.0, 21.0]);
        let mut y = [f32::NAN; 4];
        attention(&spec, &[1000.0, -1000.0, 1000.0, -1000.0], &k, &v, 0..2, &mut y);
        assert_eq!(y, [10.0, 11.0, 20.0, 21.0]);
    }

    #[test]
    fn scores_whose_exponentials_overflow() {
        let mut y = [f32::NAN];
        attention(&ONE, &[1e19], &[1e19, 1e19, -1e19], &[1.0, 3.0, f32::MAX], 0..3, &mut y);
        assert_eq!(y, [2.0]);
    }

    #[test]
    fn a_head_dim_that_is_no_multiple_of_eight() {
        let spec = AttentionSpec { head_dim: 11, scale: 3f64.ln() / 11.0, ..ONE };
        let (k, v) = ([vec![0.0; 11], vec![1.0; 11]].concat(), [vec![4.0; 11], vec![8.0; 11]].concat());
        let mut y = [f32::NAN; 11];
        attention(&spec, &[1.0; 11], &k, &v, 0..2, &mut y);
        assert_eq!(y, [7.0; 11]);
    }

    #[test]
    fn a_query_that_sees_nothing_gives_zeros() {
        let mut y = [f32::NAN];
        attention(&ONE, &[1.0], &[1.0], &[1.0], 1..1, &mut y);
        assert_eq!(y, [0.0]);
    }

    #[test]
    #[should_panic(expected = "attention: keys 0..3 of 2")]
    fn keys_past_the_cache_panic() {
        attention(&ONE, &[1.0], &[1.0; 2], &[1.0; 2], 0..3, &mut [0.0]);
    }
}
