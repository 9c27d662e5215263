//! Root-mean-square normalisation of rows.

/// `y[t, d] = x[t, d] / sqrt(mean_d x[t, d]^2 + eps) * w[d]`, w = 1 where absent.
///
/// `x` and `y [T, D]` with D = `dim`; `w [D]`. For normalisation per head, D is the head dim and
/// there are T x N rows. Source: Zhang & Sennrich 2019, arXiv 1910.07467. eps is inside the root,
/// as in the Llama and Qwen checkpoints.
pub fn rms_norm(x: &[f32], w: Option<&[f32]>, dim: usize, eps: f64, y: &mut [f32]) {
    crate::check::rows("rms_norm: x", x.len(), dim);
    crate::check::len("rms_norm: y", y.len(), x.len());
    if let Some(w) = w {
        crate::check::len("rms_norm: w", w.len(), dim);
    }
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let mean_square = crate::dot::dot(x, x) / dim as f64;
        let scale = (mean_square + eps).sqrt().recip();
        for (d, y) in y.iter_mut().enumerate() {
            *y = (x[d] as f64 * scale * w.map_or(1.0, |w| w[d] as f64)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rms_norm;

    fn normed<const LEN: usize>(x: [f32; LEN], w: Option<&[f32]>, dim: usize, eps: f64) -> [f32; LEN] {
        let mut y = [f32::NAN; LEN];
        rms_norm(&x, w, dim, eps, &mut y);
        y
    }

    #[test]
    fn three_four_has_mean_square_twelve_and_a_half() {
        assert_eq!(normed([3.0, 4.0], None, 2, 0.0), [0.848_528_14, 1.131_370_9]);
        assert_eq!(normed([3.0, 4.0], Some(&[10.0, -1.0]), 2, 0.0), [8.485_281, -1.131_370_9]);
    }

    #[test]
    fn eps_is_added_under_the_root() {
        // mean square 1, eps 3: the divisor is 2.
        assert_eq!(normed([1.0, -1.0], None, 2, 3.0), [0.5, -0.5]);
    }

    #[test]
    fn rows_near_epsilon() {
        // mean square 1e-6 = eps: 1e-3 / sqrt(2e-6) = 1 / sqrt(2).
        let y = normed([1e-3, -1e-3], None, 2, 1e-6);
        assert!((y[0] - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-7 && y[1] == -y[0], "{y:?}");
    }

    #[test]
    fn dim_one_keeps_the_sign_and_zero_rows_stay_zero() {
        assert_eq!(normed([-2.5, 0.0, 7.0], Some(&[3.0]), 1, 1e-30), [-3.0, 0.0, 3.0]);
    }

    #[test]
    fn squares_that_overflow_f32() {
        assert_eq!(normed([1e30; 5], None, 5, 1e-6), [1.0; 5]);
    }

    #[test]
    fn every_head_is_a_row_of_its_own() {
        assert_eq!(normed([2.0, 2.0, 500.0, -500.0], None, 2, 0.0), [1.0, 1.0, 1.0, -1.0]);
    }

    #[test]
    #[should_panic(expected = "rms_norm: w has 3 elements, expected 2")]
    fn the_weight_is_one_row() {
        normed([1.0, 2.0], Some(&[1.0; 3]), 2, 0.0);
    }
}
