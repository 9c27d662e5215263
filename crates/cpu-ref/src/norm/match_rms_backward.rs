//! Derivatives of rows scaled to the RMS of other rows.

use crate::dot::dot;

/// With the mean squares X of a row of `x` and L of the row of `like`, `f = sqrt(L / max(X,
/// least))` and `p = sum_d dy[d] x[d]`: `dx[d] = f (dy[d] - x[d] p / (X D))`, without the second
/// term where X is not above `least`, and `dlike[d] = p like[d] / (D sqrt(L max(X, least)))`: the
/// derivatives of [`match_rms`](crate::match_rms()). A row of `like` that is zero has the
/// derivative zero.
///
/// All `[T, D]` with D = `dim`.
pub fn match_rms_backward(
    x: &[f32],
    like: &[f32],
    dy: &[f32],
    dim: usize,
    least: f64,
    dx: &mut [f32],
    dlike: &mut [f32],
) {
    crate::check::rows("match_rms_backward: x", x.len(), dim);
    for (what, found) in [("like", like.len()), ("dy", dy.len()), ("dx", dx.len()), ("dlike", dlike.len())] {
        crate::check::len(&format!("match_rms_backward: {what}"), found, x.len());
    }
    let results = dx.chunks_exact_mut(dim).zip(dlike.chunks_exact_mut(dim));
    let rows = x.chunks_exact(dim).zip(like.chunks_exact(dim)).zip(dy.chunks_exact(dim));
    for (((x, like), dy), (dx, dlike)) in rows.zip(results) {
        let mean_square = |row: &[f32]| dot(row, row) / dim as f64;
        let (own, wanted, along) = (mean_square(x), mean_square(like), dot(dy, x));
        let factor = (wanted / own.max(least)).sqrt();
        let back = if own > least { along / (own * dim as f64) } else { 0.0 };
        let gain = if wanted > 0.0 { along / (dim as f64 * (wanted * own.max(least)).sqrt()) } else { 0.0 };
        for d in 0..dim {
            dx[d] = (factor * (f64::from(dy[d]) - f64::from(x[d]) * back)) as f32;
            dlike[d] = (gain * f64::from(like[d])) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::match_rms_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn they_are_the_derivatives_above_and_below_the_least_square() {
        let (rows, dim) = (3, 6);
        let [x, like, dy] = [1, 2, 3].map(|seed| numbers(rows * dim, seed));
        for least in [1e-3, 10.0] {
            let (mut dx, mut dlike) = (vec![f32::NAN; x.len()], vec![f32::NAN; x.len()]);
            match_rms_backward(&x, &like, &dy, dim, least, &mut dx, &mut dlike);
            let forward = |x: &[f32], like: &[f32]| {
                let mut y = vec![0.0; rows * dim];
                crate::match_rms(x, like, dim, least, &mut y);
                y
            };
            holds(|x| forward(x, &like), &x, &dy, &dx);
            holds(|like| forward(&x, like), &like, &dy, &dlike);
        }
    }

    #[test]
    fn rows_of_zeros() {
        let (mut dx, mut dlike) = ([f32::NAN; 4], [f32::NAN; 4]);
        match_rms_backward(&[0.0, 0.0, 3.0, 4.0], &[1.0, 1.0, 0.0, 0.0], &[1.0; 4], 2, 1.0, &mut dx, &mut dlike);
        assert_eq!((dx, dlike), ([1.0, 1.0, 0.0, 0.0], [0.0; 4]));
    }
}
