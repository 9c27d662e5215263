//! Derivatives of the gated activation with GELU.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// The tanh form of GELU, x s, and its derivative, s + x s (1 - s) 2 z', with `z = sqrt(2 / pi) (x
/// + 0.044715 x^3)` and `s = 1 / (1 + exp(-2 z))`.
pub(crate) fn gelu_slope(x: f64) -> (f64, f64) {
    let c = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    let z = c * (x + 0.044715 * x * x * x);
    let (s, other) = (1.0 / (1.0 + (-2.0 * z).exp()), 1.0 / (1.0 + (2.0 * z).exp()));
    // Far from zero the product is 0, even if its last factor overflows.
    let bend = if s * other == 0.0 { 0.0 } else { x * s * other * 2.0 * c * (1.0 + 3.0 * 0.044715 * x * x) };
    (x * s, s + bend)
}

/// `dgate[i] = dy[i] up[i] gelu'(gate[i])` and `dup[i] = dy[i] gelu(gate[i])`: the derivatives of
/// [`geglu`](crate::geglu()).
pub fn geglu_backward(gate: &[f32], up: &[f32], dy: &[f32], dgate: &mut [f32], dup: &mut [f32]) {
    for (what, found) in [("up", up.len()), ("dy", dy.len()), ("dgate", dgate.len()), ("dup", dup.len())] {
        crate::check::len(&format!("geglu_backward: {what}"), found, gate.len());
    }
    for i in 0..gate.len() {
        let (gelu, slope) = gelu_slope(f64::from(gate[i]));
        dgate[i] = (f64::from(dy[i]) * f64::from(up[i]) * slope) as f32;
        dup[i] = (f64::from(dy[i]) * gelu) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::geglu_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_activation() {
        let len = 40;
        let gate: Vec<f32> = numbers(len, 1).iter().map(|g| 3.0 * g).collect();
        let (up, dy) = (numbers(len, 2), numbers(len, 3));
        let (mut dgate, mut dup) = (vec![f32::NAN; len], vec![f32::NAN; len]);
        geglu_backward(&gate, &up, &dy, &mut dgate, &mut dup);
        let geglu = |gate: &[f32], up: &[f32]| {
            let mut y = vec![0.0; len];
            crate::geglu(gate, up, &mut y);
            y
        };
        holds(|gate| geglu(gate, &up), &gate, &dy, &dgate);
        holds(|up| geglu(&gate, up), &up, &dy, &dup);
    }

    #[test]
    fn gates_far_from_zero() {
        let (mut dgate, mut dup) = ([f32::NAN; 2], [f32::NAN; 2]);
        geglu_backward(&[-1e30, 1e30], &[3.0, 3.0], &[2.0, 2.0], &mut dgate, &mut dup);
        assert_eq!((dgate, dup), ([0.0, 6.0], [0.0, 2e30]));
    }
}
