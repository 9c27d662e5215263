//! Product of one activation row with a weight matrix of any type.

use crate::Rows;

/// `y[n] = sum_k w[n, k] * x[k]`: [`matmul`](crate::matmul) of one token. `w [N, K]`, `x [K]`,
/// `y [N]`.
pub fn matmul_vec(w: &Rows, x: &[f32], y: &mut [f32]) {
    crate::check::len("matmul_vec: x", x.len(), w.cols);
    crate::matmul(w, x, y);
}

#[cfg(test)]
mod tests {
    use gguf::GgmlType;

    use super::*;
    use crate::rows::tests::f32_bytes;

    #[test]
    fn three_rows_of_two() {
        let w = f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut y = [f32::NAN; 3];
        matmul_vec(&Rows::new(GgmlType::F32, 2, &w), &[10.0, 100.0], &mut y);
        assert_eq!(y, [210.0, 430.0, 650.0]);
    }

    #[test]
    #[should_panic(expected = "matmul_vec: x has 2 elements, expected 1")]
    fn two_tokens_are_refused() {
        matmul_vec(&Rows::new(GgmlType::F32, 1, &[0; 4]), &[1.0, 2.0], &mut [0.0; 2]);
    }
}
