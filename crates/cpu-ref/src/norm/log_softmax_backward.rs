//! Derivative of the logarithm of the softmax of rows.

/// `dx[t, i] = dy[t, i] - exp(y[t, i]) sum_j dy[t, j]`: the derivative of
/// [`log_softmax`](crate::log_softmax()) from its result `y`.
///
/// `y`, `dy` and `dx [T, D]` with D = `dim`.
pub fn log_softmax_backward(y: &[f32], dy: &[f32], dim: usize, dx: &mut [f32]) {
    crate::check::rows("log_softmax_backward: y", y.len(), dim);
    crate::check::len("log_softmax_backward: dy", dy.len(), y.len());
    crate::check::len("log_softmax_backward: dx", dx.len(), y.len());
    for ((y, dy), dx) in y.chunks_exact(dim).zip(dy.chunks_exact(dim)).zip(dx.chunks_exact_mut(dim)) {
        let all: f64 = dy.iter().map(|&dy| f64::from(dy)).sum();
        for ((&y, &dy), dx) in y.iter().zip(dy).zip(dx) {
            *dx = (f64::from(dy) - f64::from(y).exp() * all) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::log_softmax_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_logarithm() {
        let (rows, dim) = (4, 9);
        let x: Vec<f32> = numbers(rows * dim, 1).iter().map(|x| 3.0 * x).collect();
        let dy = numbers(rows * dim, 2);
        let log_softmax = |x: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::log_softmax(x, dim, &mut y);
            y
        };
        let mut dx = vec![f32::NAN; rows * dim];
        log_softmax_backward(&log_softmax(&x), &dy, dim, &mut dx);
        holds(log_softmax, &x, &dy, &dx);
    }
}
