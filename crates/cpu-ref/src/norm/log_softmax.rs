//! Logarithm of the softmax of rows.

/// `y[t, d] = x[t, d] - log sum_d exp(x[t, d])`, in f64.
///
/// `x` and `y [T, D]` with D = `dim`; each row holds at least one finite value.
pub fn log_softmax(x: &[f32], dim: usize, y: &mut [f32]) {
    crate::check::rows("log_softmax: x", x.len(), dim);
    crate::check::len("log_softmax: y", y.len(), x.len());
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let normalizer = log_sum_exp(x);
        for (&x, y) in x.iter().zip(y) {
            *y = (x as f64 - normalizer) as f32;
        }
    }
}

/// `log sum_d exp(x[d])`. The maximum is subtracted first, so that nothing overflows.
pub(crate) fn log_sum_exp(x: &[f32]) -> f64 {
    let max = x.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(x as f64));
    max + x.iter().map(|&x| (x as f64 - max).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::log_softmax;

    #[test]
    fn probabilities_one_and_three_quarters() {
        let mut y = [f32::NAN; 2];
        log_softmax(&[0.0, 3f32.ln()], 2, &mut y);
        assert!((y[0] - 0.25f32.ln()).abs() < 1e-6 && (y[1] - 0.75f32.ln()).abs() < 1e-6, "{y:?}");
    }

    #[test]
    fn improbable_elements_keep_their_logarithm() {
        let mut y = [f32::NAN; 4];
        log_softmax(&[0.0, -1000.0, 1e30, -1e30], 2, &mut y);
        assert_eq!(y, [0.0, -1000.0, 0.0, -2e30]);
    }

    #[test]
    fn equal_and_single_elements() {
        let mut y = [f32::NAN; 4];
        log_softmax(&[88.0; 4], 4, &mut y);
        assert_eq!(y, [-(4f32.ln()); 4]);
        log_softmax(&[-3.0, 0.0, 5.0, 1e20], 1, &mut y);
        assert_eq!(y, [0.0; 4]);
    }
}
