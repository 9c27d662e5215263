//! Rows scaled to the RMS of other rows.

/// `y[t, d] = x[t, d] sqrt(mean_d like[t, d]^2 / max(mean_d x[t, d]^2, least))`, in f64, rounded
/// once.
///
/// `x`, `like` and `y [T, D]` with D = `dim`; `least` avoids a division by zero for rows of zeros.
/// Source: the streams of Hugging Face's `Gemma3nTextModel`.
pub fn match_rms(x: &[f32], like: &[f32], dim: usize, least: f64, y: &mut [f32]) {
    crate::check::rows("match_rms: x", x.len(), dim);
    crate::check::len("match_rms: like", like.len(), x.len());
    crate::check::len("match_rms: y", y.len(), x.len());
    for ((x, like), y) in x.chunks_exact(dim).zip(like.chunks_exact(dim)).zip(y.chunks_exact_mut(dim)) {
        let mean_square = |row: &[f32]| crate::dot::dot(row, row) / dim as f64;
        let factor = (mean_square(like) / mean_square(x).max(least)).sqrt();
        for (&x, y) in x.iter().zip(y) {
            *y = (x as f64 * factor) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::match_rms;

    fn matched<const LEN: usize>(x: [f32; LEN], like: [f32; LEN], dim: usize, least: f64) -> [f32; LEN] {
        let mut y = [f32::NAN; LEN];
        match_rms(&x, &like, dim, least, &mut y);
        y
    }

    #[test]
    fn direction_of_the_one_and_size_of_the_other() {
        assert_eq!(matched([3.0, -4.0], [-8.0, 6.0], 2, 1e-5), [6.0, -8.0]);
        assert_eq!(matched([1.0, 0.0, 2.0, 2.0], [0.0, 3.0, 1.0, 1.0], 2, 1e-5), [3.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn rows_below_the_least_grow_no_further() {
        assert_eq!(matched([0.5, -0.5], [2.0, 2.0], 2, 1.0), [1.0, -1.0]);
        assert_eq!(matched([0.0, 0.0], [2.0, 2.0], 2, 1e-5), [0.0, 0.0]);
    }

    #[test]
    fn a_row_of_nothing_makes_nothing() {
        assert_eq!(matched([7.0, -7.0], [0.0, 0.0], 2, 1e-5), [0.0, -0.0]);
    }
}
