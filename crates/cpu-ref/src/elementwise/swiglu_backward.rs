//! Derivatives of the gated activation with SiLU.

/// `dgate[i] = dy[i] up[i] s (1 + gate[i] (1 - s))` with `s = 1 / (1 + exp(-gate[i]))`, and
/// `dup[i] = dy[i] gate[i] s`: the derivatives of [`swiglu`](crate::swiglu()).
pub fn swiglu_backward(gate: &[f32], up: &[f32], dy: &[f32], dgate: &mut [f32], dup: &mut [f32]) {
    for (what, found) in [("up", up.len()), ("dy", dy.len()), ("dgate", dgate.len()), ("dup", dup.len())] {
        crate::check::len(&format!("swiglu_backward: {what}"), found, gate.len());
    }
    for i in 0..gate.len() {
        let (g, u, dy) = (f64::from(gate[i]), f64::from(up[i]), f64::from(dy[i]));
        let e = (-g.abs()).exp();
        let (sigmoid, other) =
            if g >= 0.0 { (1.0 / (1.0 + e), e / (1.0 + e)) } else { (e / (1.0 + e), 1.0 / (1.0 + e)) };
        dgate[i] = (dy * u * sigmoid * (1.0 + g * other)) as f32;
        dup[i] = (dy * g * sigmoid) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::swiglu_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_the_activation() {
        let len = 40;
        let gate: Vec<f32> = numbers(len, 1).iter().map(|g| 5.0 * g).collect();
        let (up, dy) = (numbers(len, 2), numbers(len, 3));
        let (mut dgate, mut dup) = (vec![f32::NAN; len], vec![f32::NAN; len]);
        swiglu_backward(&gate, &up, &dy, &mut dgate, &mut dup);
        let swiglu = |gate: &[f32], up: &[f32]| {
            let mut y = vec![0.0; len];
            crate::swiglu(gate, up, &mut y);
            y
        };
        holds(|gate| swiglu(gate, &up), &gate, &dy, &dgate);
        holds(|up| swiglu(&gate, up), &up, &dy, &dup);
    }

    #[test]
    fn gates_far_from_zero() {
        let (mut dgate, mut dup) = ([f32::NAN; 2], [f32::NAN; 2]);
        swiglu_backward(&[-1e4, 1e4], &[3.0, 3.0], &[2.0, 2.0], &mut dgate, &mut dup);
        assert_eq!((dgate, dup), ([0.0, 6.0], [0.0, 2e4]));
    }
}
