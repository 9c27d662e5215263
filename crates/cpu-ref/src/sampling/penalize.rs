//! Penalties on tokens that already occur in the text.

use std::collections::BTreeMap;

use crate::{SampleSpec, check};

/// Changes the logit l of every distinct id among the last `last_n` of `history`; c is the number
/// of its occurrences there. First `l = l / repetition if l > 0, l * repetition otherwise`, then
/// `l -= c * frequency + presence`. Both steps are computed in f64 and rounded once.
///
/// `logits` and `y [V]`. The ids of `history` are below V, oldest first. Other logits are copied.
/// Sources: Keskar et al. 2019, arXiv 1909.05858, section 4.1 (repetition; the sign rule follows
/// Hugging Face's processor) and OpenAI's API reference (frequency, presence).
pub fn penalize(logits: &[f32], history: &[u32], spec: &SampleSpec, y: &mut [f32]) {
    check::len("penalize: y", y.len(), logits.len());
    y.copy_from_slice(logits);
    let last = &history[history.len().saturating_sub(spec.last_n as usize)..];
    let mut counts = BTreeMap::<u32, u32>::new();
    for &id in last {
        *counts.entry(id).or_default() += 1;
    }
    for (id, count) in counts {
        assert!((id as usize) < y.len(), "penalize: id {id} of {} logits", logits.len());
        let (logit, repetition) = (y[id as usize] as f64, spec.repetition as f64);
        let repeated = if logit > 0.0 { logit / repetition } else { logit * repetition };
        y[id as usize] = (repeated - (count as f64 * spec.frequency as f64 + spec.presence as f64)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn penalized<const V: usize>(logits: [f32; V], history: &[u32], spec: SampleSpec) -> [f32; V] {
        let mut y = [f32::NAN; V];
        penalize(&logits, history, &spec, &mut y);
        y
    }

    const OFF: SampleSpec = SampleSpec { last_n: u32::MAX, ..SampleSpec::GREEDY };

    #[test]
    fn repetition_divides_positive_and_multiplies_negative_logits_once() {
        let spec = SampleSpec { repetition: 2.0, ..OFF };
        assert_eq!(penalized([4.0, -4.0, 0.0, 4.0], &[0, 1, 0, 2, 0], spec), [2.0, -8.0, 0.0, 4.0]);
    }

    #[test]
    fn frequency_counts_and_presence_does_not() {
        let spec = SampleSpec { frequency: 0.5, presence: 0.25, ..OFF };
        assert_eq!(penalized([1.0, 1.0, 1.0], &[0, 2, 0, 0], spec), [-0.75, 1.0, 0.25]);
    }

    #[test]
    fn repetition_comes_before_the_subtractions() {
        let spec = SampleSpec { repetition: 2.0, frequency: 1.0, presence: 2.0, ..OFF };
        assert_eq!(penalized([4.0], &[0, 0], spec), [-2.0]);
    }

    #[test]
    fn only_the_last_n_count() {
        let spec = SampleSpec { presence: 1.0, last_n: 2, ..OFF };
        assert_eq!(penalized([0.0; 4], &[0, 1, 2, 3], spec), [0.0, 0.0, -1.0, -1.0]);
        assert_eq!(penalized([0.0; 4], &[3], spec), [0.0, 0.0, 0.0, -1.0]);
        assert_eq!(penalized([0.0; 4], &[3], SampleSpec { last_n: 0, ..spec }), [0.0; 4]);
    }

    #[test]
    fn neutral_penalties_and_empty_history_change_nothing() {
        let logits = [1.0, -0.3, f32::NEG_INFINITY, 1e38];
        assert_eq!(penalized(logits, &[0, 1, 2, 3, 3], OFF), logits);
        assert_eq!(penalized(logits, &[], SampleSpec { repetition: 9.0, ..OFF }), logits);
    }

    #[test]
    #[should_panic(expected = "penalize: id 5 of 2 logits")]
    fn an_id_past_the_vocabulary_panics() {
        penalized([0.0; 2], &[5], OFF);
    }
}
