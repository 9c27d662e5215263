//! Writes some columns of a matrix.

/// `y[t, start + i] = x[t, i]`: `x [T, dim]` becomes columns of `y [T, wide]`.
pub fn join_columns(x: &[f32], dim: usize, start: usize, wide: usize, y: &mut [f32]) {
    let rows = crate::check::rows("join_columns: x", x.len(), dim);
    crate::check::len("join_columns: y", y.len(), rows * wide);
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(wide)) {
        y[start..start + dim].copy_from_slice(x);
    }
}

#[cfg(test)]
mod tests {
    use super::join_columns;

    #[test]
    fn other_columns_keep_what_they_have() {
        let mut y = [0.0; 8];
        join_columns(&[1.0, 2.0, 3.0, 4.0], 2, 1, 4, &mut y);
        assert_eq!(y, [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0]);
    }
}
