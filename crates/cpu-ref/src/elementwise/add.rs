//! Sum of two tensors, or of a tensor and a row.

/// `y[i] = a[i] + b[i mod len b]`: a residual if `b` is as long as `a`, a bias if `b` is one row,
/// which repeats.
///
/// `a` and `y` have the same length, a multiple of the length of `b`. Each element is one f32
/// addition, so it is correctly rounded.
pub fn add(a: &[f32], b: &[f32], y: &mut [f32]) {
    crate::check::len("add: y", y.len(), a.len());
    if a.is_empty() {
        return;
    }
    crate::check::rows("add: a", a.len(), b.len());
    for (a, y) in a.chunks_exact(b.len()).zip(y.chunks_exact_mut(b.len())) {
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = a + b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn a_residual_and_a_bias_row() {
        let mut y = [f32::NAN; 4];
        add(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0, 30.0, 40.0], &mut y);
        assert_eq!(y, [11.0, 22.0, 33.0, 44.0]);
        add(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0], &mut y);
        assert_eq!(y, [11.0, 22.0, 13.0, 24.0]);
        add(&[1.0, 2.0, 3.0, 4.0], &[-1.0], &mut y);
        assert_eq!(y, [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn empty_tensors_write_nothing() {
        add(&[], &[], &mut []);
        add(&[], &[1.0], &mut []);
    }

    #[test]
    #[should_panic(expected = "add: a has 3 elements, not a multiple of the row length 2")]
    fn the_row_must_repeat_wholly() {
        add(&[1.0; 3], &[1.0; 2], &mut [0.0; 3]);
    }
}
