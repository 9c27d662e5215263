//! Sigmoid linear unit.

/// `y[i] = x[i] / (1 + exp(-x[i]))`, in f64. `x` and `y` have the same length.
///
/// Source: Elfwing et al. 2017, arXiv 1702.03118 (SiLU); also called swish with beta = 1.
pub fn silu(x: &[f32], y: &mut [f32]) {
    crate::check::len("silu: y", y.len(), x.len());
    for (&x, y) in x.iter().zip(y) {
        *y = silu_f64(x as f64) as f32;
    }
}

/// x * sigmoid(x).
pub(crate) fn silu_f64(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::silu;

    #[test]
    fn sigmoid_of_ln_three_is_three_quarters() {
        let x = 3f32.ln();
        let mut y = [f32::NAN; 3];
        silu(&[x, -x, 0.0], &mut y);
        assert!((y[0] - 0.75 * x).abs() < 1e-7 && (y[1] + 0.25 * x).abs() < 1e-7 && y[2] == 0.0, "{y:?}");
    }

    #[test]
    fn far_from_zero_it_is_x_or_nothing() {
        let mut y = [f32::NAN; 4];
        silu(&[100.0, f32::MAX, -1000.0, f32::MIN], &mut y);
        assert_eq!(y, [100.0, f32::MAX, 0.0, 0.0]);
    }

    #[test]
    fn the_left_tail_keeps_its_relative_accuracy() {
        // -20 * exp(-20) / (1 + exp(-20)).
        let mut y = [f32::NAN];
        silu(&[-20.0], &mut y);
        assert!((y[0] / -4.122_307e-8 - 1.0).abs() < 1e-6, "{y:?}");
    }
}
