//! Derivative of the rectified linear unit.

/// `dx[i] = dy[i]` where `x[i] > 0`, 0 elsewhere: the derivative of [`relu`](crate::relu()). At 0
/// it is 0, as in PyTorch.
pub fn relu_backward(x: &[f32], dy: &[f32], dx: &mut [f32]) {
    crate::check::len("relu_backward: dy", dy.len(), x.len());
    crate::check::len("relu_backward: dx", dx.len(), x.len());
    for ((&x, &dy), dx) in x.iter().zip(dy).zip(dx) {
        *dx = if x > 0.0 { dy } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::relu_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_unit() {
        let (x, dy) = (numbers(40, 1), numbers(40, 2));
        let mut dx = vec![f32::NAN; 40];
        relu_backward(&x, &dy, &mut dx);
        let relu = |x: &[f32]| {
            let mut y = vec![0.0; 40];
            crate::relu(x, &mut y);
            y
        };
        holds(relu, &x, &dy, &dx);
    }

    #[test]
    fn at_zero_it_is_zero() {
        let mut dx = [f32::NAN];
        relu_backward(&[0.0], &[3.0], &mut dx);
        assert_eq!(dx, [0.0]);
    }
}
