//! Derivative of the root-mean-square normalisation by its rows.

use crate::dot::dot;

/// `dx[t, d] = s (w[d] dy[t, d] - x[t, d] s^2 / D sum_e w[e] dy[t, e] x[t, e])` with
/// `s = 1 / sqrt(mean_d x[t, d]^2 + eps)`, w = 1 where absent: the derivative of
/// [`rms_norm`](crate::rms_norm()) by `x`.
///
/// `x`, `dy` and `dx [T, D]` with D = `dim`; `w [D]`.
pub fn rms_norm_backward(x: &[f32], w: Option<&[f32]>, dy: &[f32], dim: usize, eps: f64, dx: &mut [f32]) {
    crate::check::rows("rms_norm_backward: x", x.len(), dim);
    crate::check::len("rms_norm_backward: dy", dy.len(), x.len());
    crate::check::len("rms_norm_backward: dx", dx.len(), x.len());
    if let Some(w) = w {
        crate::check::len("rms_norm_backward: w", w.len(), dim);
    }
    let rows = x.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim));
    for ((x, dy), dx) in rows {
        let scale = (dot(x, x) / dim as f64 + eps).sqrt().recip();
        let weighted = |d: usize| f64::from(dy[d]) * w.map_or(1.0, |w| f64::from(w[d]));
        let along: f64 = x.iter().enumerate().map(|(d, &x)| weighted(d) * f64::from(x) * scale).sum();
        for (d, dx) in dx.iter_mut().enumerate() {
            *dx = (scale * (weighted(d) - f64::from(x[d]) * scale * along / dim as f64)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rms_norm_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_norm() {
        let (rows, dim, eps) = (3, 6, 0.1);
        let (x, dy, w) = (numbers(rows * dim, 1), numbers(rows * dim, 2), numbers(dim, 3));
        for w in [None, Some(&w[..])] {
            let mut dx = vec![f32::NAN; rows * dim];
            rms_norm_backward(&x, w, &dy, dim, eps, &mut dx);
            let norm = |x: &[f32]| {
                let mut y = vec![0.0; rows * dim];
                crate::rms_norm(x, w, dim, eps, &mut y);
                y
            };
            holds(norm, &x, &dy, &dx);
        }
    }

    #[test]
    fn a_longer_row_has_the_same_norm() {
        // Without eps the derivative along x is zero.
        let x = [3.0, -4.0, 12.0];
        let mut dx = [f32::NAN; 3];
        rms_norm_backward(&x, None, &x, 3, 0.0, &mut dx);
        assert!(dx.iter().all(|dx| dx.abs() < 1e-6), "{dx:?}");
    }
}
