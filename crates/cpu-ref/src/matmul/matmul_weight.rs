//! Derivative of a product with a weight matrix by the weight.

/// `g[n, k] += sum_t dy[t, n] * x[t, k]`: the derivative of [`matmul`](crate::matmul()) by `w`,
/// added to `g`.
///
/// `dy [T, N]`, `x [T, K]`, `g [N, K]`. The sum over T is rounded before it is added.
pub fn matmul_weight(dy: &[f32], x: &[f32], n: usize, k: usize, g: &mut [f32]) {
    let t = crate::check::rows("matmul_weight: dy", dy.len(), n);
    crate::check::len("matmul_weight: x", x.len(), t * k);
    crate::check::len("matmul_weight: g", g.len(), n * k);
    let mut sums = vec![0.0f64; k];
    for (i, g) in g.chunks_exact_mut(k).enumerate() {
        sums.fill(0.0);
        for (dy, x) in dy.chunks_exact(n).zip(x.chunks_exact(k)) {
            let dy = f64::from(dy[i]);
            sums.iter_mut().zip(x).for_each(|(sum, &x)| *sum += dy * f64::from(x));
        }
        g.iter_mut().zip(&sums).for_each(|(g, &sum)| *g += sum as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::matmul_weight;
    use crate::Rows;
    use crate::differences::{holds, numbers};
    use crate::rows::tests::f32_bytes;
    use gguf::GgmlType;

    #[test]
    fn it_is_the_derivative_of_the_product_added_to_what_was_there() {
        let (t, n, k) = (4, 3, 5);
        let (w, x, dy) = (numbers(n * k, 1), numbers(t * k, 2), numbers(t * n, 3));
        let mut g = vec![0.5; n * k];
        matmul_weight(&dy, &x, n, k, &mut g);
        g.iter_mut().for_each(|g| *g -= 0.5);
        let product = |w: &[f32]| {
            let mut y = vec![0.0; t * n];
            crate::matmul(&Rows::new(GgmlType::F32, k, &f32_bytes(w)), &x, &mut y);
            y
        };
        holds(product, &w, &dy, &g);
    }

    #[test]
    fn no_rows_add_nothing() {
        let mut g = [7.0; 6];
        matmul_weight(&[], &[], 2, 3, &mut g);
        assert_eq!(g, [7.0; 6]);
    }
}
