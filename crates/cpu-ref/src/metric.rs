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

/// The worst row of a result, by its normalised mean square error.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct RowError {
    /// The index of the row.
    pub row: usize,
    /// [`nmse`] of that row.
    pub nmse: f64,
    /// The largest difference of an element in any row, relative to the root mean square of the
    /// reference's row. It shows a single wrong element, which the mean of a long row hides.
    pub peak: f64,
}

/// Compares rows of `width` elements, each by itself: a sum over all rows would hide errors of the
/// small ones. Both slices have the same length, a multiple of `width`.
pub fn worst_row(reference: &[f32], got: &[f32], width: usize) -> RowError {
    crate::check::len("worst_row: got", got.len(), reference.len());
    crate::check::rows("worst_row: reference", reference.len(), width);
    let mut worst = RowError::default();
    for (row, (r, g)) in reference.chunks_exact(width).zip(got.chunks_exact(width)).enumerate() {
        let nmse = nmse(r, g);
        if nmse > worst.nmse {
            (worst.row, worst.nmse) = (row, nmse);
        }
        let largest = r.iter().zip(g).map(|(r, g)| (f64::from(*r) - f64::from(*g)).abs()).fold(0.0, f64::max);
        if nmse == f64::INFINITY {
            worst.peak = f64::INFINITY;
        } else if largest > 0.0 {
            let power = r.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>();
            worst.peak = worst.peak.max(largest / (power / width as f64).sqrt());
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::{RowError, nmse, worst_row};

    #[test]
    fn a_row_is_compared_by_itself() {
        let (reference, got) = ([3e20, 4e20, 3.0, 4.0, 0.0, 0.0], [3e20, 4e20, 3.0, 3.0, 0.0, 0.0]);
        assert_eq!(worst_row(&reference, &got, 2), RowError { row: 1, nmse: 1.0 / 25.0, peak: 1.0 / 12.5_f64.sqrt() });
        assert_eq!(worst_row(&reference, &reference, 2), RowError::default());
        assert!(nmse(&reference, &got) < 1e-30);
    }

    #[test]
    fn a_row_that_is_no_number_is_the_worst() {
        let error = worst_row(&[1.0, 2.0, 3.0], &[1.0, f32::NAN, 2.0], 1);
        assert_eq!((error.row, error.nmse, error.peak), (1, f64::INFINITY, f64::INFINITY));
    }

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
