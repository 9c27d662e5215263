//! The filters of the sampler as one threshold.

use crate::{SampleSpec, argmax};

/// The smallest logit that the filters of `spec` keep. Each filter is a threshold; logits equal to
/// the threshold are kept.
///
/// The filters apply in this order. The threshold of top-k is the k-th largest logit. The threshold
/// of top-p is the largest value such that the remaining logits at or above it hold at least
/// `top_p` of their softmax at temperature 1. The threshold of min-p is max + ln(min_p). The result
/// is minus infinity if all filters are off. Sources: Fan et al. 2018, arXiv 1805.04833; Holtzman
/// et al. 2019, arXiv 1904.09751; Nguyen et al. 2024, arXiv 2407.01082.
pub fn sample_threshold(logits: &[f32], spec: &SampleSpec) -> f64 {
    let max = logits[argmax(logits) as usize] as f64;
    let mut survivors: Vec<f32> = logits.iter().copied().filter(|logit| !logit.is_nan()).collect();
    let mut threshold = f64::NEG_INFINITY;
    let k = spec.top_k as usize;
    if (1..survivors.len()).contains(&k) {
        threshold = *survivors.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1 as f64;
        survivors.retain(|&logit| logit as f64 >= threshold);
    }
    if spec.top_p < 1.0 {
        survivors.sort_unstable_by(|a, b| b.total_cmp(a));
        let mass = |logit: f32| (logit as f64 - max).exp();
        let wanted = spec.top_p as f64 * survivors.iter().map(|&logit| mass(logit)).sum::<f64>();
        let mut sum = 0.0;
        let last = survivors.into_iter().find(|&logit| {
            sum += mass(logit);
            sum >= wanted
        });
        threshold = last.map_or(threshold, |logit| logit as f64);
    }
    if spec.min_p > 0.0 {
        threshold = threshold.max(max + (spec.min_p as f64).ln().min(0.0));
    }
    threshold
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: SampleSpec = SampleSpec { temperature: 1.0, ..SampleSpec::GREEDY };
    const LN_2: f32 = std::f32::consts::LN_2;
    /// Probabilities 1/2, 1/8, 1/4, 1/8.
    const HALVES: [f32; 4] = [-LN_2, -3.0 * LN_2, -2.0 * LN_2, -3.0 * LN_2];

    fn kept(logits: &[f32], spec: SampleSpec) -> Vec<usize> {
        let threshold = sample_threshold(logits, &spec);
        (0..logits.len()).filter(|&id| logits[id] as f64 >= threshold).collect()
    }

    #[test]
    fn top_k_keeps_ties_at_the_threshold() {
        let top_k = |top_k| kept(&HALVES, SampleSpec { top_k, ..ALL });
        assert_eq!(top_k(0), [0, 1, 2, 3]);
        assert_eq!(top_k(1), [0]);
        assert_eq!(top_k(2), [0, 2]);
        assert_eq!(top_k(3), [0, 1, 2, 3]);
        assert_eq!(top_k(u32::MAX), [0, 1, 2, 3]);
    }

    #[test]
    fn top_p_keeps_the_token_that_crosses_and_its_ties() {
        let top_p = |top_p| kept(&HALVES, SampleSpec { top_p, ..ALL });
        assert_eq!(top_p(0.0), [0]);
        assert_eq!(top_p(0.49), [0]);
        assert_eq!(top_p(0.51), [0, 2]);
        assert_eq!(top_p(0.74), [0, 2]);
        assert_eq!(top_p(0.76), [0, 1, 2, 3]);
        assert_eq!(top_p(1.0), [0, 1, 2, 3]);
        assert_eq!(kept(&[5.0; 3], SampleSpec { top_p: 0.1, ..ALL }), [0, 1, 2]);
    }

    #[test]
    fn top_p_is_a_share_of_what_top_k_left() {
        // After top-k only 1/2 and 1/4 remain, and the first holds two thirds. Of all four it holds
        // only half.
        assert_eq!(kept(&HALVES, SampleSpec { top_p: 0.6, ..ALL }), [0, 2]);
        assert_eq!(kept(&HALVES, SampleSpec { top_k: 2, top_p: 0.6, ..ALL }), [0]);
    }

    #[test]
    fn min_p_is_relative_to_the_most_probable() {
        let min_p = |min_p| kept(&HALVES, SampleSpec { min_p, ..ALL });
        assert_eq!(min_p(0.2), [0, 1, 2, 3]);
        assert_eq!(min_p(0.3), [0, 2]);
        assert_eq!(min_p(0.6), [0]);
        assert_eq!(min_p(7.0), [0]);
        assert_eq!(kept(&HALVES, SampleSpec { top_k: 1, min_p: 0.01, ..ALL }), [0]);
    }

    #[test]
    fn thresholds_ignore_nan_and_large_offsets() {
        assert_eq!(kept(&[f32::NAN, 3e38, 3e38, -3e38], SampleSpec { top_p: 0.9, ..ALL }), [1, 2]);
        // The probabilities are 0.731 and 0.269 for both offsets.
        for offset in [1000.0, -1000.0] {
            assert_eq!(kept(&[offset, offset - 1.0], SampleSpec { top_p: 0.9, ..ALL }), [0, 1]);
        }
        assert_eq!(kept(&[f32::NAN, 1.0, 2.0], SampleSpec { top_k: 1, ..ALL }), [2]);
    }
}
