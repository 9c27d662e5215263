//! Sum over the slots of a row.

/// `y[t, d] = sum_j x[t, j, d]`, in the order of the slots; `x [T, k, D]`, `y [T, D]`.
pub fn sum_slots(x: &[f32], slots: usize, dim: usize, y: &mut [f32]) {
    let rows = crate::check::rows("sum_slots: y", y.len(), dim);
    crate::check::len("sum_slots: x", x.len(), rows * slots * dim);
    for (i, y) in y.iter_mut().enumerate() {
        let (t, d) = (i / dim, i % dim);
        *y = (0..slots).map(|j| f64::from(x[(t * slots + j) * dim + d])).sum::<f64>() as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::sum_slots;

    #[test]
    fn two_rows_of_two_slots() {
        let mut y = [f32::NAN; 4];
        sum_slots(&[1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0], 2, 2, &mut y);
        assert_eq!(y, [11.0, 22.0, 33.0, 44.0]);
    }
}
