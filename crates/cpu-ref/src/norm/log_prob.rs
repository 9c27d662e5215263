//! Log-probability of one token.

use super::log_softmax::log_sum_exp;

/// `logits[id] - log sum exp(logits)`, in f64: the natural logarithm of the model's probability of
/// `id`.
///
/// `logits [V]` are the model's logits before penalties, filters and temperature.
pub fn log_prob(logits: &[f32], id: u32) -> f32 {
    assert!((id as usize) < logits.len(), "log_prob: id {id} of {} logits", logits.len());
    (logits[id as usize] as f64 - log_sum_exp(logits)) as f32
}

#[cfg(test)]
mod tests {
    use super::log_prob;

    #[test]
    fn three_to_one() {
        let logits = [3f32.ln(), 0.0];
        assert!((log_prob(&logits, 0) - 0.75f32.ln()).abs() < 1e-7);
        assert!((log_prob(&logits, 1) - 0.25f32.ln()).abs() < 1e-7);
    }

    #[test]
    fn certain_and_impossible_tokens() {
        assert_eq!(log_prob(&[1e4, -1e4], 0), 0.0);
        assert_eq!(log_prob(&[1e4, -1e4], 1), -2e4);
    }

    #[test]
    fn a_uniform_vocabulary() {
        assert_eq!(log_prob(&[-40.0; 151_936], 7), -(151_936f64.ln()) as f32);
    }

    #[test]
    #[should_panic(expected = "log_prob: id 2 of 2 logits")]
    fn an_id_past_the_vocabulary_panics() {
        log_prob(&[0.0; 2], 2);
    }
}
