//! Cross entropy of rows of logits.

/// The logarithm of the sum of the exponentials of a row.
fn log_sum_exp(row: &[f32]) -> f64 {
    let largest = row.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(f64::from(x)));
    largest + row.iter().map(|&x| (f64::from(x) - largest).exp()).sum::<f64>().ln()
}

/// `y[t] = (lse - logits[t, targets[t]], lse)` with `lse = ln sum_v exp(logits[t, v])`: the loss of
/// each row, and what its derivative needs. A target of V or more has the loss 0.
///
/// `logits [T, V]`, `targets [T]`, `y [T, 2]`.
pub fn cross_entropy(logits: &[f32], targets: &[u32], y: &mut [f32]) {
    crate::check::len("cross_entropy: y", y.len(), 2 * targets.len());
    if targets.is_empty() {
        return;
    }
    let vocabulary = logits.len() / targets.len();
    crate::check::len("cross_entropy: logits", logits.len(), targets.len() * vocabulary);
    for ((row, &target), y) in logits.chunks_exact(vocabulary).zip(targets).zip(y.chunks_exact_mut(2)) {
        let lse = log_sum_exp(row);
        y[0] = row.get(target as usize).map_or(0.0, |&x| (lse - f64::from(x)) as f32);
        y[1] = lse as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::cross_entropy;

    #[test]
    fn even_logits_lose_the_logarithm_of_their_number() {
        let mut y = [f32::NAN; 2];
        cross_entropy(&[5.0; 4], &[2], &mut y);
        assert!((y[0] - 4f32.ln()).abs() < 1e-6 && (y[1] - 5.0 - 4f32.ln()).abs() < 1e-6, "{y:?}");
    }

    #[test]
    fn logits_whose_exponentials_overflow() {
        let mut y = [f32::NAN; 2];
        cross_entropy(&[-1e30, 1e30], &[0], &mut y);
        assert_eq!(y, [2e30, 1e30]);
    }
}
