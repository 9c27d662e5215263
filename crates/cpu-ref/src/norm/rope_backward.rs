//! Derivative of the rotary position embedding.

/// `dx[i] = dy[i] cos + dy[i + dim/2] sin`, `dx[i + dim/2] = dy[i + dim/2] cos - dy[i] sin` for
/// i < dim/2: the adjoint of [`rope`](crate::rope()) with the same `table [T, dim/2, 2]`.
///
/// `dy` and `dx [T, heads, head_dim]`. Elements past dim are copied.
pub fn rope_backward(dy: &[f32], table: &[f32], heads: usize, head_dim: usize, dx: &mut [f32]) {
    let rows = crate::check::rows("rope_backward: dy", dy.len(), heads * head_dim);
    crate::check::len("rope_backward: dx", dx.len(), dy.len());
    // The table with negated sines is the inverse rotation.
    let turned: Vec<f32> = table.chunks_exact(2).flat_map(|pair| [pair[0], -pair[1]]).collect();
    crate::check::rows("rope_backward: table", table.len(), rows.max(1));
    crate::rope(dy, &turned, heads, head_dim, dx);
}

#[cfg(test)]
mod tests {
    use super::rope_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_adjoint_of_a_partial_rotation_with_a_magnitude() {
        let (rows, heads, head_dim, dim) = (2, 3, 8, 4);
        let table: Vec<f32> =
            (0..rows * dim / 2).flat_map(|i| [1.3 * (0.4 * i as f32).cos(), 1.3 * (0.4 * i as f32).sin()]).collect();
        let (x, dy) = (numbers(rows * heads * head_dim, 1), numbers(rows * heads * head_dim, 2));
        let mut dx = vec![f32::NAN; x.len()];
        rope_backward(&dy, &table, heads, head_dim, &mut dx);
        let rope = |x: &[f32]| {
            let mut y = vec![0.0; x.len()];
            crate::rope(x, &table, heads, head_dim, &mut y);
            y
        };
        holds(rope, &x, &dy, &dx);
    }
}
