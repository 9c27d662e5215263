//! Derivative of a choice of rows.

/// `dx[t] = sum of dy[o] over the o with rows[o] = t`: the derivative of
/// [`gather_rows`](crate::gather_rows()).
///
/// `dy [O, D]`, `rows [O]` in rising order, `dx [T, D]`.
///
/// # Panics
/// When `rows` do not rise.
pub fn gather_rows_backward(dy: &[f32], rows: &[u32], dim: usize, dx: &mut [f32]) {
    crate::check::len("gather_rows_backward: dy", dy.len(), rows.len() * dim);
    assert!(rows.is_sorted(), "gather_rows_backward: rows in rising order");
    let mut sums = vec![0.0f64; dx.len()];
    for (dy, &row) in dy.chunks_exact(dim).zip(rows) {
        sums[row as usize * dim..][..dim].iter_mut().zip(dy).for_each(|(sum, &dy)| *sum += f64::from(dy));
    }
    dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = sum as f32);
}

#[cfg(test)]
mod tests {
    use super::gather_rows_backward;

    #[test]
    fn rows_that_nobody_chose_are_zero_and_twice_chosen_rows_add() {
        let mut dx = [f32::NAN; 8];
        gather_rows_backward(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 3, 3], 2, &mut dx);
        assert_eq!(dx, [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 8.0, 10.0]);
    }
}
