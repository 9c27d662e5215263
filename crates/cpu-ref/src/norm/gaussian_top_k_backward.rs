//! Derivative of the sparsity by a cut-off from mean and deviation.

/// With g = dy where the result `y` is above 0 and else 0, `G = sum_d g[d]`, and the mean and the
/// biased deviation of the row: `dx[d] = g[d] - G (1 + multiplier (x[d] - mean) / deviation) / D`:
/// the derivative of [`gaussian_top_k`](crate::gaussian_top_k()). The cut-off moves with the mean
/// and with the deviation. A row of equal elements has no second term.
///
/// All `[T, D]` with D = `dim`.
pub fn gaussian_top_k_backward(x: &[f32], y: &[f32], dy: &[f32], dim: usize, multiplier: f64, dx: &mut [f32]) {
    crate::check::rows("gaussian_top_k_backward: x", x.len(), dim);
    for (what, found) in [("y", y.len()), ("dy", dy.len()), ("dx", dx.len())] {
        crate::check::len(&format!("gaussian_top_k_backward: {what}"), found, x.len());
    }
    for (row, dx) in dx.chunks_exact_mut(dim).enumerate() {
        let own = row * dim..(row + 1) * dim;
        let (x, y, dy) = (&x[own.clone()], &y[own.clone()], &dy[own]);
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / dim as f64;
        let deviation = (x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / dim as f64).sqrt();
        let kept = |d: usize| if y[d] > 0.0 { f64::from(dy[d]) } else { 0.0 };
        let all = (0..dim).map(kept).sum::<f64>() / dim as f64;
        for (d, dx) in dx.iter_mut().enumerate() {
            let slope = if deviation > 0.0 { multiplier * (f64::from(x[d]) - mean) / deviation } else { 0.0 };
            *dx = (kept(d) - all * (1.0 + slope)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::gaussian_top_k_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn the_cut_off_moves_with_mean_and_deviation() {
        // The elements are so far from the cut-off that no step of the differences crosses it.
        let dim = 8;
        let (spread, dy) = (numbers(2 * dim, 1), numbers(2 * dim, 2));
        let x: Vec<f32> = spread.iter().enumerate().map(|(i, x)| if i % 3 == 0 { 3.0 + x } else { -2.0 + x }).collect();
        for multiplier in [0.0, 0.4, -0.1] {
            let forward = |x: &[f32]| {
                let mut y = vec![0.0; x.len()];
                crate::gaussian_top_k(x, dim, multiplier, &mut y);
                y
            };
            let mut dx = vec![f32::NAN; x.len()];
            gaussian_top_k_backward(&x, &forward(&x), &dy, dim, multiplier, &mut dx);
            holds(forward, &x, &dy, &dx);
        }
    }

    #[test]
    fn equal_elements_have_no_deviation() {
        let mut dx = [f32::NAN; 2];
        gaussian_top_k_backward(&[1.0, 1.0], &[0.0, 0.0], &[5.0, 7.0], 2, 0.5, &mut dx);
        assert_eq!(dx, [0.0, 0.0]);
    }
}
