//! Derivative of the soft limit.

/// `dx[i] = dy[i] (1 - (y[i] / cap)^2)`: the derivative of [`softcap`](crate::softcap()) from its
/// result `y`.
pub fn softcap_backward(y: &[f32], dy: &[f32], cap: f64, dx: &mut [f32]) {
    crate::check::len("softcap_backward: dy", dy.len(), y.len());
    crate::check::len("softcap_backward: dx", dx.len(), y.len());
    for ((&y, &dy), dx) in y.iter().zip(dy).zip(dx) {
        let y = f64::from(y);
        *dx = (f64::from(dy) * (cap - y) / cap * ((cap + y) / cap)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::softcap_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_limit() {
        let cap = 1.5;
        let (x, dy): (Vec<f32>, _) = (numbers(30, 1).iter().map(|x| 4.0 * x).collect(), numbers(30, 2));
        let softcap = |x: &[f32]| {
            let mut y = vec![0.0; x.len()];
            crate::softcap(x, cap, &mut y);
            y
        };
        let mut dx = vec![f32::NAN; 30];
        softcap_backward(&softcap(&x), &dy, cap, &mut dx);
        holds(softcap, &x, &dy, &dx);
    }
}
