//! Index of the largest element.

/// The index of the largest element of `x`; the lowest index among equal elements. NaN is skipped;
/// if all elements are NaN, the result is 0. `x` is not empty.
pub fn argmax(x: &[f32]) -> u32 {
    assert!(!x.is_empty(), "argmax: x is empty");
    let mut best: Option<usize> = None;
    for (i, value) in x.iter().enumerate() {
        if !value.is_nan() && best.is_none_or(|best| *value > x[best]) {
            best = Some(i);
        }
    }
    best.unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[5.0; 4]), 0);
        assert_eq!(argmax(&[-1.0, -0.0, 0.0]), 1);
    }

    #[test]
    fn nan_never_wins() {
        assert_eq!(argmax(&[f32::NAN, -5.0, f32::NAN]), 1);
        assert_eq!(argmax(&[f32::NAN, f32::NEG_INFINITY]), 1);
        assert_eq!(argmax(&[f32::NAN; 2]), 0);
    }

    #[test]
    fn infinities_and_a_single_element() {
        assert_eq!(argmax(&[f32::MAX, f32::INFINITY, f32::INFINITY]), 1);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 3]), 0);
        assert_eq!(argmax(&[-2.0]), 0);
    }

    #[test]
    #[should_panic(expected = "argmax: x is empty")]
    fn an_empty_slice_panics() {
        argmax(&[]);
    }
}
