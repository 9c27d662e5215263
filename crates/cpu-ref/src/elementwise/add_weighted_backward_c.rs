//! Derivative of a weighted sum of tensors by the weights.

use crate::dot::dot;

/// `dc[t, j] = sum_d dy[t, d] x_j[t, d]`: the derivative of
/// [`add_weighted`](crate::add_weighted()) by the weights of row t.
///
/// `dy` and every tensor of `x [T, D]` with D = `dim`; `dc [T, J]` with J = `x.len()`.
pub fn add_weighted_backward_c(dy: &[f32], x: &[&[f32]], dim: usize, dc: &mut [f32]) {
    let rows = crate::check::rows("add_weighted_backward_c: dy", dy.len(), dim);
    crate::check::len("add_weighted_backward_c: dc", dc.len(), rows * x.len());
    x.iter().for_each(|x| crate::check::len("add_weighted_backward_c: x", x.len(), dy.len()));
    for (t, dc) in dc.chunks_exact_mut(x.len()).enumerate() {
        let row = t * dim..(t + 1) * dim;
        x.iter().zip(dc).for_each(|(x, dc)| *dc = dot(&dy[row.clone()], &x[row.clone()]) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::add_weighted_backward;
    use super::add_weighted_backward_c;
    use crate::RowWeights;
    use crate::differences::{holds, numbers};

    #[test]
    fn they_are_the_derivatives_by_tensors_and_by_weights() {
        let (rows, dim, columns, first, shift) = (3, 5, 4, 1, 1.0);
        let [base, a, b, dy] = [1, 2, 3, 4].map(|seed| numbers(rows * dim, seed));
        let c = numbers(rows * columns, 5);
        let forward = |base: &[f32], x: [&[f32]; 2], c: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::add_weighted(base, &x, RowWeights { c, columns, first, shift }, dim, &mut y);
            y
        };
        holds(|base| forward(base, [&a, &b], &c), &base, &dy, &dy);
        let mut dx = vec![f32::NAN; rows * dim];
        add_weighted_backward(&dy, RowWeights { c: &c, columns, first: first + 1, shift }, dim, &mut dx);
        holds(|b| forward(&base, [&a, b], &c), &b, &dy, &dx);
        let mut dc = vec![f32::NAN; rows * 2];
        add_weighted_backward_c(&dy, &[&a, &b], dim, &mut dc);
        // Columns outside first .. first + count are not read, so their derivative is 0.
        let wide: Vec<f32> = dc.chunks_exact(2).flat_map(|row| [0.0, row[0], row[1], 0.0]).collect();
        holds(|c| forward(&base, [&a, &b], c), &c, &dy, &wide);
    }
}
