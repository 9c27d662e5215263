//! Derivative of rows times the sigmoid of one number, by that number.

use crate::dot::dot;

/// `dgate[t] = s (1 - s) sum_d dy[t, d] x[t, d]` with `s = 1 / (1 + exp(-gate[t]))`: the derivative
/// of [`mul_sigmoid`](crate::mul_sigmoid()) by `gate`. The derivative by `x` is
/// [`mul_sigmoid`](crate::mul_sigmoid()) of `dy`.
///
/// `x` and `dy [T, D]`, `gate` and `dgate [T]`.
pub fn mul_sigmoid_backward(x: &[f32], gate: &[f32], dy: &[f32], dgate: &mut [f32]) {
    crate::check::len("mul_sigmoid_backward: dy", dy.len(), x.len());
    crate::check::len("mul_sigmoid_backward: dgate", dgate.len(), gate.len());
    if gate.is_empty() {
        return;
    }
    let dim = x.len() / gate.len();
    crate::check::len("mul_sigmoid_backward: x", x.len(), gate.len() * dim);
    for (t, (&gate, dgate)) in gate.iter().zip(dgate).enumerate() {
        let row = t * dim..(t + 1) * dim;
        let gate = f64::from(gate);
        let (s, other) = (1.0 / (1.0 + (-gate).exp()), 1.0 / (1.0 + gate.exp()));
        *dgate = (s * other * dot(&x[row.clone()], &dy[row])) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::mul_sigmoid_backward;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_by_the_gate_and_the_operation_itself_by_the_rows() {
        let (rows, dim) = (5, 7);
        let (x, dy) = (numbers(rows * dim, 1), numbers(rows * dim, 2));
        let gate: Vec<f32> = numbers(rows, 3).iter().map(|g| 3.0 * g).collect();
        let mut dgate = vec![f32::NAN; rows];
        mul_sigmoid_backward(&x, &gate, &dy, &mut dgate);
        let forward = |x: &[f32], gate: &[f32]| {
            let mut y = vec![0.0; rows * dim];
            crate::mul_sigmoid(x, gate, &mut y);
            y
        };
        holds(|gate| forward(&x, gate), &gate, &dy, &dgate);
        holds(|x| forward(x, &gate), &x, &dy, &forward(&dy, &gate));
    }
}
