//! Product of two tensors element by element, or of a tensor and a row.

/// `y[i] = a[i] * b[i mod len b]`: a gate if `b` is as long as `a`; a factor per channel or one
/// scalar factor if `b` is shorter and repeats.
///
/// `a` and `y` have the same length, a multiple of the length of `b`. Each element is one f32
/// product, so it is correctly rounded.
pub fn mul(a: &[f32], b: &[f32], y: &mut [f32]) {
    crate::check::len("mul: y", y.len(), a.len());
    if a.is_empty() {
        return;
    }
    crate::check::rows("mul: a", a.len(), b.len());
    for (a, y) in a.chunks_exact(b.len()).zip(y.chunks_exact_mut(b.len())) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a * b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mul;

    #[test]
    fn a_gate_a_row_and_one_factor() {
        let mut y = [f32::NAN; 4];
        mul(&[1.0, 2.0, 3.0, 4.0], &[10.0, 0.0, -1.0, 0.5], &mut y);
        assert_eq!(y, [10.0, 0.0, -3.0, 2.0]);
        mul(&[1.0, 2.0, 3.0, 4.0], &[10.0, -1.0], &mut y);
        assert_eq!(y, [10.0, -2.0, 30.0, -4.0]);
        mul(&[1.0, 2.0, 3.0, 4.0], &[2.0], &mut y);
        assert_eq!(y, [2.0, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn empty_tensors_write_nothing() {
        mul(&[], &[], &mut []);
        mul(&[], &[1.0], &mut []);
    }

    #[test]
    #[should_panic(expected = "mul: y has 1 elements, expected 2")]
    fn the_output_is_as_long_as_a() {
        mul(&[1.0; 2], &[1.0], &mut [0.0; 1]);
    }
}
