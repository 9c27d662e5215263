//! Sparsity by a cut-off computed from the mean and the standard deviation of a row.

/// `y[t, d] = max(x[t, d] - (mean_t + multiplier deviation_t), 0)` with the biased standard
/// deviation, in f64, rounded once.
///
/// `x` and `y [T, D]` with D = `dim`. If the multiplier is the s-quantile of the normal
/// distribution, about 1 - s of a normally distributed row is kept. Source: Hugging Face's
/// `Gemma3nTextMLP`.
pub fn gaussian_top_k(x: &[f32], dim: usize, multiplier: f64, y: &mut [f32]) {
    crate::check::rows("gaussian_top_k: x", x.len(), dim);
    crate::check::len("gaussian_top_k: y", y.len(), x.len());
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let mean = x.iter().map(|&x| x as f64).sum::<f64>() / dim as f64;
        let variance = x.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>() / dim as f64;
        let cutoff = mean + multiplier * variance.sqrt();
        for (&x, y) in x.iter().zip(y) {
            *y = (x as f64 - cutoff).max(0.0) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::gaussian_top_k;

    fn kept<const LEN: usize>(x: [f32; LEN], dim: usize, multiplier: f64) -> [f32; LEN] {
        let mut y = [f32::NAN; LEN];
        gaussian_top_k(&x, dim, multiplier, &mut y);
        y
    }

    #[test]
    fn the_deviation_divides_by_all() {
        // Mean 2, deviation sqrt((4 + 4) / 2) = 2. The unbiased deviation would be 2.83, and the
        // element 4 would give less than 1.
        assert_eq!(kept([0.0, 4.0], 2, 0.5), [0.0, 1.0]);
        assert_eq!(kept([0.0, 4.0], 2, 1.0), [0.0, 0.0]);
    }

    #[test]
    fn below_the_mean_by_a_negative_multiplier_and_at_it_by_none() {
        assert_eq!(kept([0.0, 4.0], 2, -2.0), [2.0, 6.0]);
        assert_eq!(kept([1.0, 2.0, 6.0], 3, 0.0), [0.0, 0.0, 3.0]);
    }

    #[test]
    fn every_row_has_its_own_cutoff_and_equal_elements_give_none() {
        assert_eq!(kept([5.0, 5.0, 0.0, 4.0], 2, 0.5), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(kept([-3.0], 1, 1.5), [0.0]);
    }
}
