//! Derivative of the sigmoid linear unit.

/// `dx[i] = dy[i] s (1 + x[i] (1 - s))` with `s = 1 / (1 + exp(-x[i]))`: the derivative of
/// [`silu`](crate::silu()).
pub fn silu_backward(x: &[f32], dy: &[f32], dx: &mut [f32]) {
    crate::check::len("silu_backward: dy", dy.len(), x.len());
    crate::check::len("silu_backward: dx", dx.len(), x.len());
    for ((&x, &dy), dx) in x.iter().zip(dy).zip(dx) {
        let x = f64::from(x);
        let (s, other) = (1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + x.exp()));
        *dx = (f64::from(dy) * s * (1.0 + x * other)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::silu_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_unit() {
        let (x, dy): (Vec<f32>, _) = (numbers(40, 1).iter().map(|x| 5.0 * x).collect(), numbers(40, 2));
        let mut dx = vec![f32::NAN; 40];
        silu_backward(&x, &dy, &mut dx);
        let silu = |x: &[f32]| {
            let mut y = vec![0.0; 40];
            crate::silu(x, &mut y);
            y
        };
        holds(silu, &x, &dy, &dx);
    }

    #[test]
    fn far_from_zero_the_slope_is_one_or_zero() {
        let mut dx = [f32::NAN; 2];
        silu_backward(&[-1e4, 1e4], &[3.0, 3.0], &mut dx);
        assert_eq!(dx, [0.0, 3.0]);
    }
}
