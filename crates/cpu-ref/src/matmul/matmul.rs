//! Product of activations with a weight matrix of any type.

use crate::{Rows, dot::dot};

/// `y[t, n] = sum_k x[t, k] * w[n, k]`.
///
/// `w [N, K]` (N rows of K = `w.cols`), `x [T, K]`, `y [T, N]`. Each weight row is dequantized to
/// f32 once and used for all T rows. A caller with several threads gives each thread a
/// `w.slice(..)` and a `y` with that many columns.
pub fn matmul(w: &Rows, x: &[f32], y: &mut [f32]) {
    let (n, k) = (w.len(), w.cols);
    let t = crate::check::rows("matmul: x", x.len(), k);
    crate::check::len("matmul: y", y.len(), t * n);
    let mut row = vec![0.0f32; k];
    for i in 0..n {
        w.dequantize_row(i, &mut row);
        for (t, x) in x.chunks_exact(k).enumerate() {
            y[t * n + i] = dot(&row, x) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use gguf::GgmlType;

    use super::*;
    use crate::rows::tests::{f32_bytes, q8_0_block};

    #[test]
    fn two_tokens_by_three_rows() {
        let w = f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut y = [f32::NAN; 6];
        matmul(&Rows::new(GgmlType::F32, 2, &w), &[1.0, -1.0, 10.0, 100.0], &mut y);
        assert_eq!(y, [-1.0, -1.0, -1.0, 210.0, 430.0, 650.0]);
    }

    #[test]
    fn quantized_weights() {
        // The block's values are q / 2 for q in -16..=15. Their sum is -8, the sum of their squares
        // is 2736 / 4.
        let w = q8_0_block();
        let x: Vec<f32> = [1.0; 32].into_iter().chain((-16..16).map(|q| q as f32 / 2.0)).collect();
        let mut y = [f32::NAN; 2];
        matmul(&Rows::new(GgmlType::Q8_0, 32, &w), &x, &mut y);
        assert_eq!(y, [-8.0, 684.0]);
    }

    #[test]
    fn a_slice_gives_its_columns() {
        let w = f32_bytes(&[1.0, 2.0, 3.0]);
        let mut y = [f32::NAN; 4];
        matmul(&Rows::new(GgmlType::F32, 1, &w).slice(1..3), &[10.0, 100.0], &mut y);
        assert_eq!(y, [20.0, 30.0, 200.0, 300.0]);
    }

    #[test]
    fn cancellation_that_f32_sums_lose() {
        let w = f32_bytes(&[1.0; 11]);
        let x = [3e7, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -3e7];
        let mut y = [f32::NAN];
        matmul(&Rows::new(GgmlType::F32, 11, &w), &x, &mut y);
        assert_eq!(y, [9.0]);
    }

    #[test]
    fn no_tokens_write_nothing() {
        matmul(&Rows::new(GgmlType::F32, 1, &[0; 4]), &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "matmul: y has 1 elements, expected 2")]
    fn the_output_is_tokens_by_rows() {
        matmul(&Rows::new(GgmlType::F32, 1, &[0; 8]), &[1.0], &mut [0.0]);
    }
}
