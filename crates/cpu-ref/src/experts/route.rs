//! The choice of experts from a router's logits.

use std::cmp::Ordering;

/// The rule by which each row chooses its experts.
#[derive(Clone, Copy, Debug)]
pub struct RouteSpec<'a> {
    /// Experts to choose from (E).
    pub experts: usize,
    /// Experts that each row gets (k), 1 to E.
    pub chosen: usize,
    /// True if the weights of the chosen experts sum to 1. Otherwise the softmax runs over all
    /// experts.
    pub normalize: bool,
    /// A factor on the weight of each expert; `[E]`.
    pub scale: Option<&'a [f32]>,
}

/// Writes the `k` experts with the largest logits, largest first; among equal logits the lower
/// number comes first. `weights[t, j] = scale[e] exp(logits[t, e]) / sum exp(logits[t, ..])` for e
/// = `experts[t, j]`. The sum is over all experts or over the chosen experts. `logits [T, E]`,
/// `experts` and `weights [T, k]`.
///
/// Source: Shazeer et al. 2017, arXiv 1701.06538 (softmax before the choice, as in Hugging Face's
/// `Qwen3MoeTopKRouter`).
pub fn route(spec: &RouteSpec<'_>, logits: &[f32], experts: &mut [u32], weights: &mut [f32]) {
    let RouteSpec { experts: e, chosen: k, normalize, scale } = *spec;
    assert!((1..=e).contains(&k), "route: {k} of {e} experts");
    let rows = crate::check::rows("route: logits", logits.len(), e);
    crate::check::len("route: experts", experts.len(), rows * k);
    crate::check::len("route: weights", weights.len(), rows * k);
    if let Some(scale) = scale {
        crate::check::len("route: scale", scale.len(), e);
    }
    let choices = experts.chunks_exact_mut(k).zip(weights.chunks_exact_mut(k));
    for (logits, (experts, weights)) in logits.chunks_exact(e).zip(choices) {
        let mut order: Vec<usize> = (0..e).collect();
        order.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap_or(Ordering::Equal));
        let largest = logits[order[0]] as f64;
        let power = |e: usize| (logits[e] as f64 - largest).exp();
        let summed = if normalize { &order[..k] } else { &order[..] };
        let sum: f64 = summed.iter().map(|&e| power(e)).sum();
        for (j, &e) in order[..k].iter().enumerate() {
            experts[j] = e as u32;
            weights[j] = (power(e) / sum * scale.map_or(1.0, |s| s[e] as f64)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logits whose softmax is 1/10, 2/10, 3/10, 4/10.
    fn tenths() -> Vec<f32> {
        [1.0f32, 2.0, 3.0, 4.0].map(f32::ln).to_vec()
    }

    fn routed(spec: &RouteSpec<'_>, logits: &[f32]) -> (Vec<u32>, Vec<f32>) {
        let rows = logits.len() / spec.experts;
        let (mut experts, mut weights) = (vec![u32::MAX; rows * spec.chosen], vec![f32::NAN; rows * spec.chosen]);
        route(spec, logits, &mut experts, &mut weights);
        (experts, weights)
    }

    fn close(got: &[f32], expected: &[f32]) {
        assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-6), "{got:?} for {expected:?}");
    }

    #[test]
    fn shares_of_all_and_of_the_chosen() {
        let spec = RouteSpec { experts: 4, chosen: 2, normalize: false, scale: None };
        let (experts, weights) = routed(&spec, &tenths());
        assert_eq!(experts, [3, 2]);
        close(&weights, &[0.4, 0.3]);
        close(&routed(&RouteSpec { normalize: true, ..spec }, &tenths()).1, &[4.0 / 7.0, 3.0 / 7.0]);
    }

    #[test]
    fn a_factor_per_expert_comes_after_the_sum() {
        let scale = [9.0, 9.0, 10.0, 0.5];
        let spec = RouteSpec { experts: 4, chosen: 2, normalize: true, scale: Some(&scale) };
        close(&routed(&spec, &tenths()).1, &[2.0 / 7.0, 30.0 / 7.0]);
    }

    #[test]
    fn the_lower_number_wins_ties_and_rows_are_apart() {
        let spec = RouteSpec { experts: 3, chosen: 2, normalize: true, scale: None };
        let (experts, weights) = routed(&spec, &[0.0, 5.0, 5.0, 7.0, -1.0, 7.0]);
        assert_eq!(experts, [1, 2, 0, 2]);
        close(&weights, &[0.5; 4]);
    }

    #[test]
    fn logits_whose_exponentials_overflow() {
        let spec = RouteSpec { experts: 2, chosen: 2, normalize: false, scale: None };
        close(&routed(&spec, &[-1e30, 1e30]).1, &[1.0, 0.0]);
    }

    #[test]
    #[should_panic(expected = "route: 3 of 2 experts")]
    fn more_than_there_are() {
        routed(&RouteSpec { experts: 2, chosen: 3, normalize: true, scale: None }, &[]);
    }
}
