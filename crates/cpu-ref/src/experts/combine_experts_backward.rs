//! Derivatives of the weighted sum of the results of a row's experts.

use crate::dot::dot;

/// `dx[t, j, d] = weights[t, j] dy[t, d]` and `dweights[t, j] = sum_d dy[t, d] x[t, j, d]`: the
/// derivatives of [`combine_experts`](crate::combine_experts()).
///
/// `x` and `dx [T, k, D]`, `weights` and `dweights [T, k]`, `dy [T, D]`.
pub fn combine_experts_backward(
    x: &[f32],
    weights: &[f32],
    dy: &[f32],
    dim: usize,
    dx: &mut [f32],
    dweights: &mut [f32],
) {
    let rows = crate::check::rows("combine_experts_backward: dy", dy.len(), dim);
    crate::check::len("combine_experts_backward: x", x.len(), weights.len() * dim);
    crate::check::len("combine_experts_backward: dx", dx.len(), x.len());
    crate::check::len("combine_experts_backward: dweights", dweights.len(), weights.len());
    let k = weights.len().checked_div(rows).unwrap_or(0);
    for (s, (dx, dweight)) in dx.chunks_exact_mut(dim).zip(dweights).enumerate() {
        let dy = &dy[s / k * dim..][..dim];
        *dweight = dot(dy, &x[s * dim..][..dim]) as f32;
        dx.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = weights[s] * dy);
    }
}

#[cfg(test)]
mod tests {
    use super::combine_experts_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn they_are_the_derivatives_by_the_results_and_by_the_weights() {
        let (rows, k, dim) = (3, 2, 5);
        let (x, weights, dy) = (numbers(rows * k * dim, 1), numbers(rows * k, 2), numbers(rows * dim, 3));
        let (mut dx, mut dweights) = (vec![f32::NAN; x.len()], vec![f32::NAN; rows * k]);
        combine_experts_backward(&x, &weights, &dy, dim, &mut dx, &mut dweights);
        let forward = |x: &[f32], weights: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::combine_experts(x, weights, dim, &mut y);
            y
        };
        holds(|x| forward(x, &weights), &x, &dy, &dx);
        holds(|weights| forward(&x, weights), &weights, &dy, &dweights);
    }
}
