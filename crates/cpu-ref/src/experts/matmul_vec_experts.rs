//! Product of one activation row with the weights of one expert.

use std::ops::Range;

use crate::Rows;

/// `y[n] = sum_k w[expert * stride + rows.start + n, k] * x[k]`:
/// [`matmul_experts`](crate::matmul_experts) of one slot.
pub fn matmul_vec_experts(w: &Rows, stride: usize, rows: Range<usize>, expert: u32, x: &[f32], y: &mut [f32]) {
    crate::check::len("matmul_vec_experts: x", x.len(), w.cols);
    crate::matmul_experts(w, stride, rows, &[expert], x, y);
}

#[cfg(test)]
mod tests {
    use gguf::GgmlType;

    use super::*;
    use crate::rows::tests::f32_bytes;

    #[test]
    fn the_second_of_two_experts() {
        let w = f32_bytes(&[1.0, 2.0, 3.0, 4.0]);
        let mut y = [f32::NAN; 2];
        matmul_vec_experts(&Rows::new(GgmlType::F32, 1, &w), 2, 0..2, 1, &[10.0], &mut y);
        assert_eq!(y, [30.0, 40.0]);
    }

    #[test]
    #[should_panic(expected = "matmul_vec_experts: x has 2 elements, expected 1")]
    fn two_rows_are_refused() {
        matmul_vec_experts(&Rows::new(GgmlType::F32, 1, &[0; 4]), 1, 0..1, 0, &[1.0, 2.0], &mut [0.0]);
    }
}
