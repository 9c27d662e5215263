//! Gated feed-forward activation with SiLU.

use super::silu::silu_f64;

/// `y[i] = silu(gate[i]) * up[i]`, in f64, rounded once. All three have the same length.
///
/// Source: Shazeer 2020, arXiv 2002.05202 (SwiGLU), the part between the projections.
pub fn swiglu(gate: &[f32], up: &[f32], y: &mut [f32]) {
    crate::check::len("swiglu: up", up.len(), gate.len());
    crate::check::len("swiglu: y", y.len(), gate.len());
    for ((&gate, &up), y) in gate.iter().zip(up).zip(y) {
        *y = (silu_f64(gate as f64) * up as f64) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::swiglu;

    #[test]
    fn the_activation_is_on_the_gate() {
        // sigmoid(ln 3) = 3 / 4. Swapped operands would give ln 3 * sigmoid(4) * 4.
        let gate = 3f32.ln();
        let mut y = [f32::NAN; 2];
        swiglu(&[gate, 0.0], &[4.0, 7.0], &mut y);
        assert!((y[0] - 3.0 * gate).abs() < 4e-7 && y[1] == 0.0, "{y:?}");
    }

    #[test]
    fn a_large_up_rescues_a_tiny_gate() {
        // silu(-100) = -3.72e-42 is subnormal in f32. Rounding it before the product would lose
        // most of its digits.
        let mut y = [f32::NAN];
        swiglu(&[-100.0], &[1e38], &mut y);
        assert!((y[0] / -3.720_076e-4 - 1.0).abs() < 1e-6, "{y:?}");
    }

    #[test]
    #[should_panic(expected = "swiglu: up has 1 elements, expected 2")]
    fn gate_and_up_have_one_shape() {
        swiglu(&[0.0; 2], &[0.0; 1], &mut [0.0; 2]);
    }
}
