//! The weighted sum of the results of a row's experts.

/// `y[t, d] = sum_j weights[t, j] * x[t, j, d]`; `x [T, k, D]`, `weights [T, k]`, `y [T, D]`.
pub fn combine_experts(x: &[f32], weights: &[f32], dim: usize, y: &mut [f32]) {
    let rows = crate::check::rows("combine_experts: y", y.len(), dim);
    crate::check::len("combine_experts: x", x.len(), weights.len() * dim);
    assert!(
        rows == 0 || weights.len().is_multiple_of(rows),
        "combine_experts: {} weights for {rows} rows",
        weights.len()
    );
    let k = weights.len().checked_div(rows).unwrap_or(0);
    for (t, y) in y.chunks_exact_mut(dim).enumerate() {
        for (d, y) in y.iter_mut().enumerate() {
            let slots = t * k..(t + 1) * k;
            *y = slots.map(|s| weights[s] as f64 * x[s * dim + d] as f64).sum::<f64>() as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::combine_experts;

    #[test]
    fn two_rows_of_two_choices() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let mut y = [f32::NAN; 4];
        combine_experts(&x, &[1.0, 10.0, 0.5, -1.0], 2, &mut y);
        assert_eq!(y, [31.0, 42.0, -4.5, -5.0]);
    }

    #[test]
    #[should_panic(expected = "combine_experts: x has 3 elements, expected 4")]
    fn every_choice_has_a_row() {
        combine_experts(&[0.0; 3], &[1.0, 1.0], 2, &mut [0.0; 2]);
    }
}
