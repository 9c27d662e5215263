//! Derivative of products with experts' weights by the activations.

use crate::Rows;
use std::ops::Range;

/// `dx[s, k] = sum_n dy[s, n] w[experts[s] * stride + rows.start + n, k]` for every slot s: the
/// derivative of [`matmul_experts`](crate::matmul_experts()) by the activations of a slot. Where
/// several slots read one row, its derivative is the sum of theirs.
///
/// `w [E * stride, K]`, `experts [S]`, `dy [S, N]` with N = `rows.len()`, `dx [S, K]`.
pub fn matmul_experts_input(w: &Rows, stride: usize, rows: Range<usize>, experts: &[u32], dy: &[f32], dx: &mut [f32]) {
    let (n, k) = (rows.len(), w.cols);
    assert!(rows.end <= stride && w.len().is_multiple_of(stride), "matmul_experts_input: rows {rows:?} of {stride}");
    crate::check::len("matmul_experts_input: dy", dy.len(), experts.len() * n);
    crate::check::len("matmul_experts_input: dx", dx.len(), experts.len() * k);
    for ((&expert, dy), dx) in experts.iter().zip(dy.chunks_exact(n)).zip(dx.chunks_exact_mut(k)) {
        let first = expert as usize * stride + rows.start;
        crate::matmul_input(&w.slice(first..first + n), dy, dx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differences::{holds, numbers};
    use crate::rows::tests::f32_bytes;
    use gguf::GgmlType;

    #[test]
    fn it_is_the_derivative_with_a_part_of_every_expert() {
        let (count, stride, k, experts) = (3, 4, 5, [2, 0, 1, 2]);
        let bytes = f32_bytes(&numbers(count * stride * k, 1));
        let w = Rows::new(GgmlType::F32, k, &bytes);
        let (x, dy, mut dx) =
            (numbers(experts.len() * k, 2), numbers(experts.len() * 2, 3), vec![f32::NAN; experts.len() * k]);
        matmul_experts_input(&w, stride, 1..3, &experts, &dy, &mut dx);
        let product = |x: &[f32]| {
            let mut y = vec![0.0; experts.len() * 2];
            crate::matmul_experts(&w, stride, 1..3, &experts, x, &mut y);
            y
        };
        holds(product, &x, &dy, &dx);
    }
}
