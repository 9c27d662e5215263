//! Derivative of a product with a weight matrix by its activations.

use crate::Rows;

/// `dx[t, k] = sum_n dy[t, n] * w[n, k]`: the derivative of [`matmul`](crate::matmul()) by `x`.
///
/// `w [N, K]`, `dy [T, N]`, `dx [T, K]`. Each weight row is dequantized to f32 once. Rows of `dy`
/// are independent, so a caller with several threads gives each thread some of them.
pub fn matmul_input(w: &Rows, dy: &[f32], dx: &mut [f32]) {
    let t = crate::check::rows("matmul_input: dy", dy.len(), w.len());
    crate::check::len("matmul_input: dx", dx.len(), t * w.cols);
    let mut sums = vec![0.0f64; dx.len()];
    add_matmul_input(w, 0, dy, &mut sums);
    dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = sum as f32);
}

/// `sums[t, k] += sum_n dy[t, first + n] * w[n, k]`: the part of [`matmul_input`] that some rows of
/// a weight add, whose first row has the number `first`.
///
/// `w [N, K]`, `dy [T, all rows of the weight]`, `sums [T, K]`.
pub fn add_matmul_input(w: &Rows, first: usize, dy: &[f32], sums: &mut [f64]) {
    let k = w.cols;
    let t = crate::check::rows("add_matmul_input: sums", sums.len(), k);
    if t == 0 {
        return;
    }
    let all = dy.len() / t;
    crate::check::len("add_matmul_input: dy", dy.len(), t * all.max(first + w.len()));
    let mut row = vec![0.0f32; k];
    for i in 0..w.len() {
        w.dequantize_row(i, &mut row);
        for (sums, dy) in sums.chunks_exact_mut(k).zip(dy.chunks_exact(all)) {
            let dy = f64::from(dy[first + i]);
            sums.iter_mut().zip(&row).for_each(|(sum, &w)| *sum += dy * f64::from(w));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differences::{holds, numbers};
    use crate::rows::tests::{f32_bytes, q8_0_block};
    use gguf::GgmlType;

    #[test]
    fn it_is_the_derivative_of_the_product() {
        let (t, n, k) = (3, 5, 7);
        let bytes = f32_bytes(&numbers(n * k, 1));
        let w = Rows::new(GgmlType::F32, k, &bytes);
        let (x, dy, mut dx) = (numbers(t * k, 2), numbers(t * n, 3), vec![f32::NAN; t * k]);
        matmul_input(&w, &dy, &mut dx);
        let product = |x: &[f32]| {
            let mut y = vec![0.0; t * n];
            crate::matmul(&w, x, &mut y);
            y
        };
        holds(product, &x, &dy, &dx);
    }

    #[test]
    fn the_parts_of_a_weight_add_to_the_whole_bit_for_bit() {
        let (t, n, k) = (3, 5, 7);
        let bytes = f32_bytes(&numbers(n * k, 1));
        let w = Rows::new(GgmlType::F32, k, &bytes);
        let (dy, mut whole, mut sums) = (numbers(t * n, 3), vec![f32::NAN; t * k], vec![0.0; t * k]);
        matmul_input(&w, &dy, &mut whole);
        add_matmul_input(&w.slice(0..2), 0, &dy, &mut sums);
        add_matmul_input(&w.slice(2..5), 2, &dy, &mut sums);
        assert_eq!(sums.iter().map(|&sum| sum as f32).collect::<Vec<_>>(), whole);
    }

    #[test]
    fn a_row_of_blocks() {
        // The block's values are q / 2 for q in -16..=15.
        let block = q8_0_block();
        let mut dx = [f32::NAN; 32];
        matmul_input(&Rows::new(GgmlType::Q8_0, 32, &block).slice(0..1), &[4.0], &mut dx);
        assert_eq!([dx[0], dx[16], dx[31]], [-32.0, 0.0, 30.0]);
    }
}
