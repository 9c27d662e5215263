//! Derivative of the layer normalisation by its rows.

use super::layer_norm::moments;

/// `dx[t, d] = s (g[d] - mean(g) - n[d] mean(g n))` with `g = w dy`, `n = (x - mean) s` and
/// `s = 1 / sqrt(variance + eps)` of row t, w = 1 where absent: the derivative of
/// [`layer_norm`](crate::layer_norm()) by `x`.
///
/// `x`, `dy` and `dx [T, D]` with D = `dim`; `w [D]`.
pub fn layer_norm_backward(x: &[f32], w: Option<&[f32]>, dy: &[f32], dim: usize, eps: f64, dx: &mut [f32]) {
    crate::check::rows("layer_norm_backward: x", x.len(), dim);
    crate::check::len("layer_norm_backward: dy", dy.len(), x.len());
    crate::check::len("layer_norm_backward: dx", dx.len(), x.len());
    if let Some(w) = w {
        crate::check::len("layer_norm_backward: w", w.len(), dim);
    }
    let rows = x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim));
    for ((x, dy), dx) in rows {
        let (mean, scale) = moments(x, eps);
        let weighted = |d: usize| f64::from(dy[d]) * w.map_or(1.0, |w| f64::from(w[d]));
        let normed = |d: usize| (f64::from(x[d]) - mean) * scale;
        let average = (0..dim).map(weighted).sum::<f64>() / dim as f64;
        let along = (0..dim).map(|d| weighted(d) * normed(d)).sum::<f64>() / dim as f64;
        for (d, dx) in dx.iter_mut().enumerate() {
            *dx = (scale * (weighted(d) - average - normed(d) * along)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::layer_norm_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_norm() {
        let (rows, dim, eps) = (3, 6, 0.1);
        let (x, dy, w) = (numbers(rows * dim, 1), numbers(rows * dim, 2), numbers(dim, 3));
        for w in [None, Some(&w[..])] {
            let mut dx = vec![f32::NAN; rows * dim];
            layer_norm_backward(&x, w, &dy, dim, eps, &mut dx);
            let norm = |x: &[f32]| {
                let mut y = vec![0.0; rows * dim];
                crate::layer_norm(x, w, Some(&[0.3; 6]), dim, eps, &mut y);
                y
            };
            holds(norm, &x, &dy, &dx);
        }
    }

    #[test]
    fn a_shifted_row_has_the_same_norm() {
        // The derivative along a constant row is zero.
        let mut dx = [f32::NAN; 4];
        layer_norm_backward(&[1.0, -2.0, 5.0, 0.5], None, &[0.3, 2.0, -1.0, 0.7], 4, 1e-5, &mut dx);
        assert!(dx.iter().sum::<f32>().abs() < 1e-6, "{dx:?}");
    }
}
