//! Soft limit on logits and attention scores.

/// `y[i] = cap * tanh(x[i] / cap)`, in f64. `x` and `y` have the same length; `cap` is positive.
///
/// Source: Gemma 2 report, arXiv 2408.00118, section 2.
pub fn softcap(x: &[f32], cap: f64, y: &mut [f32]) {
    crate::check::len("softcap: y", y.len(), x.len());
    for (&x, y) in x.iter().zip(y) {
        *y = softcap_f64(x as f64, cap) as f32;
    }
}

/// cap * tanh(x / cap).
pub(crate) fn softcap_f64(x: f64, cap: f64) -> f64 {
    cap * (x / cap).tanh()
}

#[cfg(test)]
mod tests {
    use super::softcap;

    #[test]
    fn tanh_of_half_ln_three_is_one_half() {
        let x = 30.0 * 0.5 * 3f32.ln();
        let mut y = [f32::NAN; 3];
        softcap(&[x, -x, 0.0], 30.0, &mut y);
        assert!((y[0] - 15.0).abs() < 2e-6 && y[1] == -y[0] && y[2] == 0.0, "{y:?}");
    }

    #[test]
    fn huge_inputs_saturate_at_the_cap() {
        let mut y = [f32::NAN; 3];
        softcap(&[f32::MAX, -1e9, f32::INFINITY], 50.0, &mut y);
        assert_eq!(y, [50.0, -50.0, 50.0]);
    }

    #[test]
    fn small_inputs_pass() {
        let mut y = [f32::NAN];
        softcap(&[1e-4], 50.0, &mut y);
        assert_eq!(y, [1e-4]);
    }
}
