//! The measure of the difference between a result and its reference.

/// Normalised mean square error: `sum (reference - got)^2 / sum reference^2`, in f64.
///
/// Infinite if any value of either slice is not finite. A reference of zeros gives 0 if `got` is
/// also all zeros, and infinity otherwise. Both slices have the same length.
pub fn nmse(reference: &[f32], got: &[f32]) -> f64 {
    crate::check::len("nmse: got", got.len(), reference.len());
    let (mut error, mut power) = (0.0f64, 0.0f64);
    for (&r, &g) in reference.iter().zip(got) {
        if !r.is_finite() || !g.is_finite() {
            return f64::INFINITY;
        }
        error += (r as f64 - g as f64).powi(2);
        power += (r as f64).powi(2);
    }
    if error == 0.0 { 0.0 } else { error / power }
}

#[cfg(test)]
mod tests {
    use super::nmse;

    #[test]
    fn hand_computed_ratio() {
        assert_eq!(nmse(&[3.0, 4.0], &[3.0, 3.0]), 1.0 / 25.0);
    }

    #[test]
    fn equal_slices_and_empty_slices_are_zero() {
        assert_eq!(nmse(&[1.5, -2.0], &[1.5, -2.0]), 0.0);
        assert_eq!(nmse(&[0.0], &[-0.0]), 0.0);
        assert_eq!(nmse(&[], &[]), 0.0);
    }

    #[test]
    fn zero_reference_with_an_error_is_infinite() {
        assert_eq!(nmse(&[0.0, 0.0], &[0.0, 1e-30]), f64::INFINITY);
    }

    #[test]
    fn anything_not_finite_is_infinite_even_when_equal() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(nmse(&[1.0, 2.0], &[1.0, bad]), f64::INFINITY);
            assert_eq!(nmse(&[1.0, bad], &[1.0, 2.0]), f64::INFINITY);
            assert_eq!(nmse(&[1.0, bad], &[1.0, bad]), f64::INFINITY);
        }
    }

    #[test]
    fn magnitudes_whose_squares_overflow_f32() {
        assert!((nmse(&[3e38], &[1.5e38]) - 0.25).abs() < 1e-7);
    }

    #[test]
    #[should_panic(expected = "nmse: got has 1 elements, expected 2")]
    fn lengths_must_agree() {
        nmse(&[1.0, 2.0], &[1.0]);
    }
}
