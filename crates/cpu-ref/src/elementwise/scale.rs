//! Multiplication by one number.

/// `y[i] = x[i] * s`, the product taken in f64. `x` and `y` have the same length.
pub fn scale(x: &[f32], s: f64, y: &mut [f32]) {
    crate::check::len("scale: y", y.len(), x.len());
    for (&x, y) in x.iter().zip(y) {
        *y = (x as f64 * s) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn a_factor_that_f32_cannot_hold() {
        // 1 + 2^-24 rounds to 1 in f32. Its product with 1.5 lies three quarters of the way from
        // 1.5 to the next f32.
        let mut y = [f32::NAN; 3];
        scale(&[1.5, -1.5, 0.0], 1.0 + 0.5f64.powi(24), &mut y);
        assert_eq!(y, [1.5f32.next_up(), -1.5f32.next_up(), 0.0]);
    }

    #[test]
    fn an_empty_slice_is_allowed() {
        scale(&[], 2.0, &mut []);
    }
}
