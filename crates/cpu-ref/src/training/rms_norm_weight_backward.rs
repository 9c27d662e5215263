//! Derivative of the root-mean-square normalisation by its weight.

use crate::dot::dot;

/// `g[d] += sum_t dy[t, d] x[t, d] / sqrt(mean_e x[t, e]^2 + eps)`: the derivative of
/// [`rms_norm`](crate::rms_norm()) by `w`, added to `g`. The sum is rounded before it is added.
///
/// `x` and `dy [T, D]` with D = `dim`; `g [D]`.
pub fn rms_norm_weight_backward(x: &[f32], dy: &[f32], dim: usize, eps: f64, g: &mut [f32]) {
    crate::check::rows("rms_norm_weight_backward: x", x.len(), dim);
    crate::check::len("rms_norm_weight_backward: dy", dy.len(), x.len());
    crate::check::len("rms_norm_weight_backward: g", g.len(), dim);
    let mut sums = vec![0.0f64; dim];
    for (x, dy) in x.chunks_exact(dim).zip(dy.chunks_exact(dim)) {
        let scale = (dot(x, x) / dim as f64 + eps).sqrt().recip();
        sums.iter_mut().zip(x).zip(dy).for_each(|((sum, &x), &dy)| *sum += f64::from(dy) * f64::from(x) * scale);
    }
    g.iter_mut().zip(&sums).for_each(|(g, &sum)| *g += sum as f32);
}

#[cfg(test)]
mod tests {
    use super::rms_norm_weight_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_by_the_weight_added_to_what_was_there() {
        let (rows, dim, eps) = (4, 6, 0.1);
        let (x, dy, w) = (numbers(rows * dim, 1), numbers(rows * dim, 2), numbers(dim, 3));
        let mut g = vec![0.25; dim];
        rms_norm_weight_backward(&x, &dy, dim, eps, &mut g);
        g.iter_mut().for_each(|g| *g -= 0.25);
        let norm = |w: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::rms_norm(&x, Some(w), dim, eps, &mut y);
            y
        };
        holds(norm, &w, &dy, &g);
    }
}
