//! Gated feed-forward activation with GELU.

use super::gelu::gelu_f64;

/// `y[i] = gelu(gate[i]) * up[i]` with the tanh form of GELU, in f64, rounded once. All three have
/// the same length.
///
/// Source: Shazeer 2020, arXiv 2002.05202 (GEGLU), the part between the projections.
pub fn geglu(gate: &[f32], up: &[f32], y: &mut [f32]) {
    crate::check::len("geglu: up", up.len(), gate.len());
    crate::check::len("geglu: y", y.len(), gate.len());
    for ((&gate, &up), y) in gate.iter().zip(up).zip(y) {
        *y = (gelu_f64(gate as f64) * up as f64) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::geglu;

    #[test]
    fn the_activation_is_on_the_gate() {
        // gelu(1) = 0.841191990608277 by decimal arithmetic.
        let mut y = [f32::NAN; 3];
        geglu(&[1.0, 0.0, 30.0], &[2.0, 9.0, -2.0], &mut y);
        assert!((y[0] - 1.682_384).abs() < 2e-7, "{y:?}");
        assert_eq!(y[1..], [0.0, -60.0]);
    }

    #[test]
    #[should_panic(expected = "geglu: y has 1 elements, expected 2")]
    fn the_output_is_as_long_as_the_gate() {
        geglu(&[0.0; 2], &[0.0; 2], &mut [0.0; 1]);
    }
}
