//! Rows of a matrix in any order.

use crate::check;

/// `y[o, d] = x[rows[o], d]`: `x [T, D]`, `rows [Out]`, `y [Out, D]`. Panics if an index is not a
/// row of `x`.
pub fn gather_rows(x: &[f32], rows: &[u32], y: &mut [f32]) {
    if rows.is_empty() {
        return;
    }
    let dim = check::rows("gather_rows: y", y.len(), rows.len());
    for (&row, y) in rows.iter().zip(y.chunks_exact_mut(dim)) {
        y.copy_from_slice(&x[row as usize * dim..][..dim]);
    }
}

#[cfg(test)]
mod tests {
    use super::gather_rows;

    #[test]
    fn repeats_and_reorders() {
        let mut y = [0.0; 6];
        gather_rows(&[1.0, 2.0, 3.0, 4.0], &[1, 0, 1], &mut y);
        assert_eq!(y, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    }
}
