//! Rows, each multiplied by the sigmoid of one number.

/// `y[t, d] = x[t, d] / (1 + exp(-gate[t]))`; `x` and `y [T, D]`, `gate [T]`.
pub fn mul_sigmoid(x: &[f32], gate: &[f32], y: &mut [f32]) {
    crate::check::len("mul_sigmoid: y", y.len(), x.len());
    if gate.is_empty() {
        return crate::check::len("mul_sigmoid: x", x.len(), 0);
    }
    assert!(x.len().is_multiple_of(gate.len()), "mul_sigmoid: {} gates for {} elements", gate.len(), x.len());
    let dim = x.len() / gate.len();
    for (i, (y, &x)) in y.iter_mut().zip(x).enumerate() {
        *y = (x as f64 / (1.0 + (-gate[i / dim] as f64).exp())) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::mul_sigmoid;

    #[test]
    fn half_of_a_row_and_rows_shut_and_open() {
        let mut y = [f32::NAN; 6];
        mul_sigmoid(&[2.0, -4.0, 1.0, 1.0, 3.0, 5.0], &[0.0, -1000.0, 1000.0], &mut y);
        assert_eq!(y, [1.0, -2.0, 0.0, 0.0, 3.0, 5.0]);
    }

    #[test]
    #[should_panic(expected = "mul_sigmoid: 2 gates for 3 elements")]
    fn a_gate_per_row() {
        mul_sigmoid(&[0.0; 3], &[0.0; 2], &mut [0.0; 3]);
    }
}
