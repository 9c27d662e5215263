//! Derivative of the softmax of rows.

/// `dx[t, i] = y[t, i] (dy[t, i] - sum_j y[t, j] dy[t, j] / sum_j y[t, j])`: the derivative of
/// [`softmax`](crate::softmax()) from its result `y`. The last sum is 1 except for the rounding of
/// `y`; with it, a constant in a row of `dy` changes nothing.
///
/// `y`, `dy` and `dx [T, D]` with D = `dim`.
pub fn softmax_backward(y: &[f32], dy: &[f32], dim: usize, dx: &mut [f32]) {
    crate::check::rows("softmax_backward: y", y.len(), dim);
    crate::check::len("softmax_backward: dy", dy.len(), y.len());
    crate::check::len("softmax_backward: dx", dx.len(), y.len());
    for ((y, dy), dx) in y.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim)) {
        // Where one element has nearly all the weight, its own derivative cancels in the
        // difference. So the differences to it are taken first.
        let largest = (0..dim).fold(0, |most, d| if y[d] > y[most] { d } else { most });
        let apart = |d: usize| f64::from(dy[d]) - f64::from(dy[largest]);
        let all: f64 = y.iter().map(|&y| f64::from(y)).sum();
        let mean = (0..dim).map(|d| f64::from(y[d]) * apart(d)).sum::<f64>() / all;
        for (d, dx) in dx.iter_mut().enumerate() {
            *dx = (f64::from(y[d]) * (apart(d) - mean)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::softmax_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_softmax() {
        let (rows, dim) = (4, 9);
        let x: Vec<f32> = numbers(rows * dim, 1).iter().map(|x| 2.0 * x).collect();
        let dy = numbers(rows * dim, 2);
        let softmax = |x: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::softmax(x, dim, &mut y);
            y
        };
        let mut dx = vec![f32::NAN; rows * dim];
        softmax_backward(&softmax(&x), &dy, dim, &mut dx);
        holds(softmax, &x, &dy, &dx);
    }

    #[test]
    fn one_element_with_nearly_all_the_weight() {
        // dx[1] = y[0] y[1] (dy[1] - dy[0]), and dx[0] is its negative.
        let (y, dy, mut dx) = ([1.0, 1e-14], [3.0, 5.0], [f32::NAN; 2]);
        softmax_backward(&y, &dy, 2, &mut dx);
        assert!((dx[1] / 2e-14 - 1.0).abs() < 1e-6 && (dx[0] / -2e-14 - 1.0).abs() < 1e-6, "{dx:?}");
    }

    #[test]
    fn a_constant_derivative_has_no_effect() {
        let mut dx = [f32::NAN; 3];
        softmax_backward(&[0.999_999, 1e-6, 1e-9], &[1e6; 3], 3, &mut dx);
        assert!(dx.iter().all(|dx| dx.abs() < 1e-6), "{dx:?}");
    }
}
