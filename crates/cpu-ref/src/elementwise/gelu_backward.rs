//! Derivative of the Gaussian error linear unit, tanh form.

use super::geglu_backward::gelu_slope;

/// `dx[i] = dy[i] gelu'(x[i])`: the derivative of [`gelu`](crate::gelu()).
pub fn gelu_backward(x: &[f32], dy: &[f32], dx: &mut [f32]) {
    crate::check::len("gelu_backward: dy", dy.len(), x.len());
    crate::check::len("gelu_backward: dx", dx.len(), x.len());
    for ((&x, &dy), dx) in x.iter().zip(dy).zip(dx) {
        *dx = (f64::from(dy) * gelu_slope(f64::from(x)).1) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::gelu_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_unit() {
        let (x, dy): (Vec<f32>, _) = (numbers(40, 1).iter().map(|x| 3.0 * x).collect(), numbers(40, 2));
        let mut dx = vec![f32::NAN; 40];
        gelu_backward(&x, &dy, &mut dx);
        let gelu = |x: &[f32]| {
            let mut y = vec![0.0; 40];
            crate::gelu(x, &mut y);
            y
        };
        holds(gelu, &x, &dy, &dx);
    }

    #[test]
    fn far_from_zero_the_slope_is_one_or_zero() {
        let mut dx = [f32::NAN; 2];
        gelu_backward(&[-1e30, 1e30], &[3.0, 3.0], &mut dx);
        assert_eq!(dx, [0.0, 3.0]);
    }
}
