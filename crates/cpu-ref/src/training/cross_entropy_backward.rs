//! Derivative of the cross entropy by rows of logits.

/// `d[t, v] = weights[t] (exp(logits[t, v] - lse[t]) - [v = targets[t]])`: the derivative of
/// `sum_t weights[t] loss[t]` of [`cross_entropy`](crate::cross_entropy()) by the logits. A target
/// of V or more gives zeros.
///
/// `losses [T, 2]` as [`cross_entropy`](crate::cross_entropy()) made them.
pub fn cross_entropy_backward(logits: &[f32], targets: &[u32], weights: &[f32], losses: &[f32], d: &mut [f32]) {
    crate::check::len("cross_entropy_backward: d", d.len(), logits.len());
    crate::check::len("cross_entropy_backward: weights", weights.len(), targets.len());
    crate::check::len("cross_entropy_backward: losses", losses.len(), 2 * targets.len());
    if targets.is_empty() {
        return;
    }
    let vocabulary = logits.len() / targets.len();
    for (t, (row, d)) in logits.chunks_exact(vocabulary).zip(d.chunks_exact_mut(vocabulary)).enumerate() {
        let (lse, weight) = (f64::from(losses[2 * t + 1]), f64::from(weights[t]));
        let target = targets[t] as usize;
        for (v, d) in d.iter_mut().enumerate() {
            let p = (f64::from(row[v]) - lse).exp() - f64::from(u8::from(v == target));
            *d = if target < vocabulary { (weight * p) as f32 } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cross_entropy_backward;
    use crate::cross_entropy;
    use crate::differences::{holds, numbers};

    #[test]
    fn the_derivative_of_the_weighted_sum_of_the_losses() {
        let (vocabulary, targets, weights) = (9, [3, 8, 9, 0], [0.5, 2.0, 1.0, 0.0]);
        let logits: Vec<f32> = numbers(4 * vocabulary, 1).iter().map(|x| 3.0 * x).collect();
        let losses = |logits: &[f32]| {
            let mut y = vec![f32::NAN; 8];
            cross_entropy(logits, &targets, &mut y);
            y
        };
        let mut d = vec![f32::NAN; logits.len()];
        cross_entropy_backward(&logits, &targets, &weights, &losses(&logits), &mut d);
        let each: Vec<f32> = weights.iter().flat_map(|&w| [w, 0.0]).collect();
        holds(losses, &logits, &each, &d);
        assert!(d[2 * vocabulary..].iter().all(|&d| d == 0.0), "no target, no weight: {d:?}");
    }
}
