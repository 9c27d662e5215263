//! What the derivatives of attention need of a query row.

use crate::{check, dot::dot};

/// `stats[n] = (lse[n], sum_h dy[n, h] y[n, h])`: what the derivatives of attention need of a row.
/// `y` and `dy [heads, head_dim]`, `lse [heads]`, `stats [heads, 2]`, for any number of rows.
pub fn attention_delta(dim: usize, y: &[f32], dy: &[f32], lse: &[f32], stats: &mut [f32]) {
    check::len("attention_delta: dy", dy.len(), y.len());
    check::len("attention_delta: y", y.len(), lse.len() * dim);
    check::len("attention_delta: stats", stats.len(), 2 * lse.len());
    for (n, (y, dy)) in y.chunks_exact(dim).zip(dy.chunks_exact(dim)).enumerate() {
        stats[2 * n] = lse[n];
        stats[2 * n + 1] = dot(y, dy) as f32;
    }
}
