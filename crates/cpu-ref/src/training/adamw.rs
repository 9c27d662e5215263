//! The step of an optimizer.

/// The constants of a step of [`adamw`].
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AdamwSpec {
    /// Shares of the moments that a step keeps.
    pub beta1: f64,
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decay of the parameters, decoupled from the gradients.
    pub decay: f64,
}

/// The numbers that change from step to step.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AdamwStep {
    /// Learning rate.
    pub rate: f32,
    /// Largest norm of all gradients together; infinite for no clipping.
    pub most: f32,
    /// 1 - beta1^t and 1 - beta2^t in step t, which begins at 1.
    pub corrections: [f32; 2],
}

impl AdamwStep {
    /// The numbers of step `t`, the first of which is 1.
    pub fn new(spec: &AdamwSpec, rate: f32, most: f32, t: u32) -> Self {
        let correction = |beta: f64| -(f64::from(t) * beta.ln()).exp_m1();
        Self { rate, most, corrections: [spec.beta1, spec.beta2].map(|beta| correction(beta) as f32) }
    }
}

/// The numbers that a step changes: parameters, and the first and second moments of their
/// gradients.
pub struct Adapted<'a> {
    pub p: &'a mut [f32],
    pub m: &'a mut [f32],
    pub v: &'a mut [f32],
}

/// A step of AdamW, where `squares` is the sum of the squares of all gradients. With
/// `g = gradient min(1, most / (sqrt(squares) + 1e-6))`:
///
/// `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`,
/// `p = p (1 - rate decay) - rate m / c1 / (sqrt(v / c2) + eps)` with the corrections c1 and c2.
///
/// Nothing changes if `squares` is not finite. Source: Loshchilov & Hutter 2017, arXiv 1711.05101,
/// as in PyTorch's `AdamW` and `clip_grad_norm_`.
pub fn adamw(spec: &AdamwSpec, step: &AdamwStep, squares: f32, gradient: &[f32], to: Adapted<'_>) {
    let Adapted { p, m, v } = to;
    for (what, found) in [("p", p.len()), ("m", m.len()), ("v", v.len())] {
        crate::check::len(&format!("adamw: {what}"), found, gradient.len());
    }
    if !squares.is_finite() {
        return;
    }
    let clip = (f64::from(step.most) / (f64::from(squares).sqrt() + 1e-6)).min(1.0);
    let [c1, c2] = step.corrections.map(f64::from);
    let rate = f64::from(step.rate);
    for (i, &g) in gradient.iter().enumerate() {
        let g = f64::from(g) * clip;
        let first = spec.beta1 * f64::from(m[i]) + (1.0 - spec.beta1) * g;
        let second = spec.beta2 * f64::from(v[i]) + (1.0 - spec.beta2) * g * g;
        let moved = rate * first / c1 / ((second / c2).sqrt() + spec.eps);
        p[i] = (f64::from(p[i]) * (1.0 - rate * spec.decay) - moved) as f32;
        m[i] = first as f32;
        v[i] = second as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: AdamwSpec = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.1 };

    fn stepped(gradients: &[f32], rate: f32, most: f32) -> [f32; 3] {
        let [mut p, mut m, mut v] = [[1.0], [0.0], [0.0]];
        for (t, &g) in (1..).zip(gradients) {
            let to = Adapted { p: &mut p, m: &mut m, v: &mut v };
            adamw(&SPEC, &AdamwStep::new(&SPEC, rate, most, t), g * g, &[g], to);
        }
        [p[0], m[0], v[0]]
    }

    #[test]
    fn the_first_step_goes_by_the_rate_whatever_the_size_of_the_gradient() {
        for g in [1e-3, 5.0, 1e4] {
            let [p, m, v] = stepped(&[g], 0.01, f32::INFINITY);
            assert!((p - (1.0 - 0.01 * 0.1 - 0.01)).abs() < 1e-6, "{p}");
            assert!((m / (0.1 * g) - 1.0).abs() < 1e-6 && (v / (0.001 * g * g) - 1.0).abs() < 1e-6, "{m}, {v}");
        }
    }

    #[test]
    fn two_steps_by_hand() {
        // m = 0.9 0.1 + 0.1 3 = 0.39, v = 0.999 0.001 + 0.001 9 = 0.009999; corrected 0.39 / 0.19
        // and 0.009999 / 0.001999. The first step leaves 1 - 0.001 - 0.01 = 0.989.
        let [p, m, v] = stepped(&[1.0, 3.0], 0.01, f32::INFINITY);
        let moved = 0.01 * (0.39 / 0.19) / (0.009_999_f64 / 0.001_999).sqrt();
        assert!((f64::from(p) - (0.989 * 0.999 - moved)).abs() < 1e-6, "{p}");
        assert!((m - 0.39).abs() < 1e-6 && (v - 0.009_999).abs() < 1e-7, "{m}, {v}");
    }

    #[test]
    fn large_gradients_are_clipped_and_small_ones_are_not() {
        let [_, m, _] = stepped(&[8.0], 0.01, 2.0);
        assert!((m - 0.2).abs() < 1e-6, "{m}");
        assert_eq!(stepped(&[1.0], 0.01, 2.0), stepped(&[1.0], 0.01, f32::INFINITY));
    }

    #[test]
    fn a_norm_that_is_no_number_changes_nothing() {
        for squares in [f32::NAN, f32::INFINITY] {
            let [mut p, mut m, mut v] = [[1.0], [2.0], [3.0]];
            let to = Adapted { p: &mut p, m: &mut m, v: &mut v };
            adamw(&SPEC, &AdamwStep::new(&SPEC, 0.1, 1.0, 1), squares, &[f32::NAN], to);
            assert_eq!([p, m, v], [[1.0], [2.0], [3.0]]);
        }
    }
}
