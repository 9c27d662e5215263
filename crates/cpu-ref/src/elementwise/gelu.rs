//! Gaussian error linear unit, tanh form.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// `y[i] = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, in f64. `x` and `y` have the same
/// length.
///
/// Source: Hendrycks & Gimpel 2016, arXiv 1606.08415, section 2 (the approximation that Gemma's
/// checkpoints use).
pub fn gelu(x: &[f32], y: &mut [f32]) {
    crate::check::len("gelu: y", y.len(), x.len());
    for (&x, y) in x.iter().zip(y) {
        *y = gelu_f64(x as f64) as f32;
    }
}

/// The tanh form, computed with (1 + tanh z) / 2 = 1 / (1 + exp(-2 z)), which has no cancellation
/// for negative z.
pub(crate) fn gelu_f64(x: f64) -> f64 {
    let z = FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (x + 0.044715 * x * x * x);
    x / (1.0 + (-2.0 * z).exp())
}

#[cfg(test)]
mod tests {
    use super::gelu;

    #[test]
    fn values_of_the_formula_at_sixty_digits() {
        // x (1 + tanh z) / 2 by decimal arithmetic with 60 digits.
        let cases = [
            (0.5, 0.345714009825144),
            (1.0, 0.841191990608277),
            (3.0, 2.99636260791823),
            (-1.0, -0.158808009391723),
            (-3.0, -0.00363739208177302),
            (-5.0, -2.29179619662951e-7),
            (-10.0, -1.20409234820981e-37),
        ];
        for (x, want) in cases {
            let mut y = [f32::NAN];
            gelu(&[x], &mut y);
            assert!((y[0] as f64 / want - 1.0).abs() < 1e-7, "gelu({x}) = {}, expected {want}", y[0]);
        }
    }

    #[test]
    fn it_is_the_tanh_form_and_not_the_erf_form() {
        // The exact GELU x Phi(x) at 2 is 1.9544997, a difference of 9.8e-5.
        let mut y = [f32::NAN];
        gelu(&[2.0], &mut y);
        assert!((y[0] - 1.954_499_7).abs() > 5e-5, "{y:?}");
    }

    #[test]
    fn far_from_zero_it_is_x_or_nothing() {
        let mut y = [f32::NAN; 5];
        gelu(&[0.0, 50.0, f32::MAX, -50.0, f32::MIN], &mut y);
        assert_eq!(y, [0.0, 50.0, f32::MAX, 0.0, 0.0]);
    }
}
