//! Layer normalisation of rows.

/// The mean of a row, and 1 / sqrt(variance + eps).
pub(crate) fn moments(x: &[f32], eps: f64) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    (mean, (variance + eps).sqrt().recip())
}

/// `y[t, d] = (x[t, d] - mean) / sqrt(variance + eps) * w[d] + b[d]` with the mean and the variance
/// of row t, w = 1 and b = 0 where absent. The variance is over D, not D - 1.
///
/// `x` and `y [T, D]` with D = `dim`; `w` and `b [D]`. Source: Ba, Kiros & Hinton 2016, arXiv
/// 1607.06450. eps is inside the root, as in PyTorch.
pub fn layer_norm(x: &[f32], w: Option<&[f32]>, b: Option<&[f32]>, dim: usize, eps: f64, y: &mut [f32]) {
    crate::check::rows("layer_norm: x", x.len(), dim);
    crate::check::len("layer_norm: y", y.len(), x.len());
    for (name, of) in [("layer_norm: w", w), ("layer_norm: b", b)] {
        if let Some(of) = of {
            crate::check::len(name, of.len(), dim);
        }
    }
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let (mean, scale) = moments(x, eps);
        for (d, y) in y.iter_mut().enumerate() {
            let (w, b) = (w.map_or(1.0, |w| f64::from(w[d])), b.map_or(0.0, |b| f64::from(b[d])));
            *y = ((f64::from(x[d]) - mean) * scale * w + b) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::layer_norm;

    #[test]
    fn one_to_four_has_mean_two_and_a_half_and_variance_five_quarters() {
        let (mut y, s) = ([f32::NAN; 4], 1.25f32.sqrt().recip());
        layer_norm(&[1.0, 2.0, 3.0, 4.0], Some(&[1.0, 1.0, 2.0, -1.0]), Some(&[0.0, 0.5, 0.0, 1.0]), 4, 0.0, &mut y);
        let expected = [-1.5 * s, 0.5 - 0.5 * s, s, 1.0 - 1.5 * s];
        assert!(y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-6), "{y:?} {expected:?}");
    }

    #[test]
    fn eps_is_added_under_the_root() {
        // variance 1, eps 3: the divisor is 2.
        let mut y = [f32::NAN; 2];
        layer_norm(&[6.0, 4.0], None, None, 2, 3.0, &mut y);
        assert_eq!(y, [0.5, -0.5]);
    }

    #[test]
    fn equal_elements_are_the_bias() {
        let mut y = [f32::NAN; 3];
        layer_norm(&[7.0; 3], Some(&[9.0; 3]), Some(&[1.0, 2.0, 3.0]), 3, 1e-6, &mut y);
        assert_eq!(y, [1.0, 2.0, 3.0]);
    }
}
