//! Rectified linear unit.

/// `y[i] = max(x[i], 0)`. NaN stays NaN. `x` and `y` have the same length.
///
/// Source: Nair & Hinton 2010, "Rectified Linear Units Improve Restricted Boltzmann Machines".
pub fn relu(x: &[f32], y: &mut [f32]) {
    crate::check::len("relu: y", y.len(), x.len());
    for (&x, y) in x.iter().zip(y) {
        *y = if x < 0.0 { 0.0 } else { x };
    }
}

#[cfg(test)]
mod tests {
    use super::relu;

    #[test]
    fn negative_elements_are_zero_and_nan_stays() {
        let mut y = [7.0; 5];
        relu(&[-2.0, 0.0, 3.0, f32::MIN, f32::NAN], &mut y);
        assert_eq!(y[..4], [0.0, 0.0, 3.0, 0.0]);
        assert!(y[4].is_nan());
    }
}
