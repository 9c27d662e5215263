//! Derivative of a weighted sum of tensors by one of the tensors.

use crate::RowWeights;

/// `dx[t, d] = (c[t, first] + shift) dy[t, d]`: the derivative of
/// [`add_weighted`](crate::add_weighted()) by the tensor whose weights are in column `first`.
///
/// `dy` and `dx [T, D]` with D = `dim`.
pub fn add_weighted_backward(dy: &[f32], weights: RowWeights<'_>, dim: usize, dx: &mut [f32]) {
    let RowWeights { c, columns, first, shift } = weights;
    let rows = crate::check::rows("add_weighted_backward: dy", dy.len(), dim);
    crate::check::len("add_weighted_backward: c", c.len(), rows * columns);
    crate::check::len("add_weighted_backward: dx", dx.len(), dy.len());
    assert!(first < columns, "add_weighted_backward: column {first} of {columns}");
    for (i, (&dy, dx)) in dy.iter().zip(dx).enumerate() {
        *dx = ((f64::from(c[i / dim * columns + first]) + shift) * f64::from(dy)) as f32;
    }
}
