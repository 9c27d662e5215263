//! Derivatives of attention by its keys and values.

use super::attention::AttentionSpec;
use super::attention_lse::score;
use crate::{check, dot::dot};

/// The derivatives of attention by a key row and by its value row: `dk[g] = sum_t,n ds[t, n] q[t,
/// n]` and `dv[g] = sum_t,n p[t, n] dy[t, n]` over the rows `seen_by` and the query heads n of the
/// kv head g; `ds` and `p` as in [`attention_backward_q`](super::attention_backward_q()).
///
/// `q` and `dy [T, heads, head_dim]`; `k`, `v`, `dk` and `dv [kv_heads, head_dim]`; `stats [T,
/// heads, 2]`.
pub fn attention_backward_kv(
    spec: &AttentionSpec,
    operands: [&[f32]; 5],
    seen_by: impl Iterator<Item = usize> + Clone,
    results: [&mut [f32]; 2],
) {
    attention_backward_kv_rounded(spec, operands, seen_by, |_, of| of, results);
}

/// The derivatives of [`attention_backward_kv`] with `round(t, [ds, p])` instead of each `ds` and
/// `p` of row t. Kernels that multiply `ds` and `p` in f16 are compared with these derivatives.
pub fn attention_backward_kv_rounded(
    spec: &AttentionSpec,
    [q, k, v, dy, stats]: [&[f32]; 5],
    seen_by: impl Iterator<Item = usize> + Clone,
    round: impl Fn(usize, [f64; 2]) -> [f64; 2],
    [dk, dv]: [&mut [f32]; 2],
) {
    let dim = spec.head_dim;
    let group = check::rows("attention_backward_kv: heads", spec.heads, spec.kv_heads);
    for (what, found) in [("k", k.len()), ("v", v.len()), ("dk", dk.len()), ("dv", dv.len())] {
        check::len(&format!("attention_backward_kv: {what}"), found, spec.kv_heads * dim);
    }
    for g in 0..spec.kv_heads {
        let own = g * dim..(g + 1) * dim;
        let (mut sums_k, mut sums_v) = (vec![0.0f64; dim], vec![0.0f64; dim]);
        for t in seen_by.clone() {
            for n in g * group..(g + 1) * group {
                let row = t * spec.heads + n;
                let (q, dy) = (&q[row * dim..][..dim], &dy[row * dim..][..dim]);
                let (score, slope) = score(spec, q, &k[own.clone()]);
                let p = (score - f64::from(stats[2 * row])).exp();
                let ds = p * (dot(dy, &v[own.clone()]) - f64::from(stats[2 * row + 1])) * slope;
                let [ds, p] = round(t, [ds, p]);
                sums_k.iter_mut().zip(q).for_each(|(sum, &q)| *sum += ds * f64::from(q));
                sums_v.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += p * f64::from(dy));
            }
        }
        dk[own.clone()].iter_mut().zip(&sums_k).for_each(|(dk, &sum)| *dk = sum as f32);
        dv[own].iter_mut().zip(&sums_v).for_each(|(dv, &sum)| *dv = sum as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{attention_backward_q, attention_delta, attention_lse};
    use super::*;
    use crate::differences::{holds, numbers};
    use crate::{Mask, attention};

    const ROWS: usize = 5;

    fn forward(spec: &AttentionSpec, mask: Mask, [q, k, v]: [&[f32]; 3]) -> Vec<f32> {
        let width = spec.heads * spec.head_dim;
        let mut y = vec![0.0; ROWS * width];
        for (t, y) in y.chunks_exact_mut(width).enumerate() {
            attention(spec, &q[t * width..][..width], k, v, mask.visible(t, ROWS), y);
        }
        y
    }

    #[test]
    fn they_are_the_derivatives_of_attention() {
        for (mask, softcap) in [(Mask::Causal, None), (Mask::Window(2), Some(0.7)), (Mask::Bidirectional, Some(3.0))] {
            let spec = AttentionSpec { heads: 4, kv_heads: 2, head_dim: 3, scale: 0.8, softcap };
            let (width, kv_width) = (spec.heads * 3, spec.kv_heads * 3);
            let [q, dy] = [1, 2].map(|seed| numbers(ROWS * width, seed));
            let [k, v] = [3, 4].map(|seed| numbers(ROWS * kv_width, seed));
            let y = forward(&spec, mask, [&q, &k, &v]);
            let (mut lse, mut stats) = (vec![0.0; ROWS * spec.heads], vec![0.0; ROWS * spec.heads * 2]);
            for (t, lse) in lse.chunks_exact_mut(spec.heads).enumerate() {
                attention_lse(&spec, &q[t * width..][..width], &k, mask.visible(t, ROWS), lse);
            }
            attention_delta(3, &y, &dy, &lse, &mut stats);
            let mut dq = vec![f32::NAN; q.len()];
            let (mut dk, mut dv) = (vec![f32::NAN; k.len()], vec![f32::NAN; v.len()]);
            for t in 0..ROWS {
                let of = [
                    &q[t * width..][..width],
                    &k,
                    &v,
                    &dy[t * width..][..width],
                    &stats[t * 2 * spec.heads..][..2 * spec.heads],
                ];
                attention_backward_q(&spec, of, mask.visible(t, ROWS), &mut dq[t * width..][..width]);
                let own = t * kv_width..(t + 1) * kv_width;
                let seen_by = (0..ROWS).filter(move |&row| mask.visible(row, ROWS).contains(&t));
                let results = [&mut dk[own.clone()], &mut dv[own.clone()]];
                attention_backward_kv(&spec, [&q, &k[own.clone()], &v[own], &dy, &stats], seen_by, results);
            }
            holds(|q| forward(&spec, mask, [q, &k, &v]), &q, &dy, &dq);
            holds(|k| forward(&spec, mask, [&q, k, &v]), &k, &dy, &dk);
            holds(|v| forward(&spec, mask, [&q, &k, v]), &v, &dy, &dv);
        }
    }

    #[test]
    fn a_query_that_sees_nothing_has_no_derivative() {
        let spec = AttentionSpec { heads: 1, kv_heads: 1, head_dim: 1, scale: 1.0, softcap: None };
        let (mut lse, mut dq) = ([f32::NAN], [f32::NAN]);
        attention_lse(&spec, &[2.0], &[1.0], 1..1, &mut lse);
        attention_backward_q(&spec, [&[2.0], &[1.0], &[1.0], &[1.0], &[0.0, 0.0]], 1..1, &mut dq);
        assert_eq!([lse, dq], [[0.0], [0.0]]);
    }
}
