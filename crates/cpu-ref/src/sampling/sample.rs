//! Choice of the next token: filters, temperature and a Gumbel-max draw.

use crate::{argmax, sample_threshold, threefry2x32};

/// The parameters for the choice of the next token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSpec {
    /// Divides the logits that the filters keep. At or below 0 the largest logit is taken, and the
    /// filters have no effect.
    pub temperature: f32,
    /// Keeps the k largest logits; 0 for all.
    pub top_k: u32,
    /// Keeps the largest logits whose probabilities sum to this share; 1 for all.
    pub top_p: f32,
    /// Keeps tokens whose probability is at least this fraction of the largest probability; 0 for
    /// all.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens already present; 1 for none.
    pub repetition: f32,
    /// Subtracted once per occurrence; 0 for none.
    pub frequency: f32,
    /// Subtracted once from tokens already present; 0 for none.
    pub presence: f32,
    /// Number of last tokens that the three penalties consider.
    pub last_n: u32,
    /// Seed of the draws, low word first.
    pub seed: [u32; 2],
    /// Index of the sequence in its batch. Each sequence has independent draws.
    pub sequence: u32,
}

impl SampleSpec {
    /// Takes the largest logit, with all filters and penalties off.
    pub const GREEDY: SampleSpec = SampleSpec {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition: 1.0,
        frequency: 0.0,
        presence: 0.0,
        last_n: 0,
        seed: [0, 0],
        sequence: 0,
    };
}

/// The id drawn at `position` from `logits [V]`, to which [`penalize`](crate::penalize) was already
/// applied.
///
/// Temperature <= 0 is [`argmax`]. Otherwise the result is the argmax of logit / temperature +
/// g(id) over the logits at or above [`sample_threshold`]; among equals the lowest id. Here g =
/// -ln(-ln u) with u = ((bits >> 8) + 1/2) / 2^24, which is never 0 or 1, and bits is the first
/// word of `threefry2x32([seed[0] ^ sequence * 0x9e3779b9, seed[1]], [position, id])`. The draw
/// follows the softmax of the kept logits divided by the temperature, independent of the order in
/// which ids are visited. (In f32, values of u above 1/2 are rounded, the last to 1. Code in f32
/// computes ln u there from 1 - u, which is exact.) Source: Maddison et al. 2014, arXiv 1411.0030,
/// section 2 (the Gumbel-max trick). NaN never wins.
pub fn sample(logits: &[f32], spec: &SampleSpec, position: u32) -> u32 {
    let greedy = argmax(logits);
    if spec.temperature <= 0.0 {
        return greedy;
    }
    let threshold = sample_threshold(logits, spec);
    let key = [spec.seed[0] ^ spec.sequence.wrapping_mul(0x9e37_79b9), spec.seed[1]];
    let (mut best, mut best_score) = (greedy, f64::NEG_INFINITY);
    for (id, &logit) in (0..).zip(logits).filter(|(_, logit)| **logit as f64 >= threshold) {
        let bits = threefry2x32(key, [position, id])[0];
        let u = ((bits >> 8) as f64 + 0.5) / (1 << 24) as f64;
        let score = logit as f64 / spec.temperature as f64 - (-u.ln()).ln();
        if score > best_score {
            (best, best_score) = (id, score);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: SampleSpec = SampleSpec { temperature: 1.0, seed: [17, 4], ..SampleSpec::GREEDY };
    /// Probabilities in the ratio 4 : 1 : 8 : 2 : 1.
    const LOGITS: [f32; 5] = [2.0 * LN_2, 0.0, 3.0 * LN_2, LN_2, 0.0];
    const LN_2: f32 = std::f32::consts::LN_2;
    const DRAWS: u32 = 20_000;

    /// Pearson's chi-square of the counted ids against the weights, divided by the upper 0.1 %
    /// point for its degrees of freedom. Below 1 if the draws follow the weights. An id of weight 0
    /// must not occur.
    fn chi_square(draws: impl Iterator<Item = u32>, weights: &[f64]) -> f64 {
        let mut counts = vec![0.0; weights.len()];
        draws.for_each(|id| counts[id as usize] += 1.0);
        let unit = counts.iter().sum::<f64>() / weights.iter().sum::<f64>();
        let (mut sum, mut outcomes) = (0.0, 0);
        for (id, (&count, &weight)) in counts.iter().zip(weights).enumerate() {
            assert!(weight > 0.0 || count == 0.0, "id {id} was filtered and drawn {count} times");
            if weight > 0.0 {
                sum += (count - unit * weight).powi(2) / (unit * weight);
                outcomes += 1;
            }
        }
        sum / match outcomes {
            2 => 10.828,
            3 => 13.816,
            5 => 18.467,
            16 => 37.697,
            _ => unreachable!("no critical value for {outcomes} outcomes"),
        }
    }

    #[test]
    fn draws_follow_the_filtered_softmax() {
        let cases = [
            (PLAIN, [4.0, 1.0, 8.0, 2.0, 1.0]),
            (SampleSpec { temperature: 0.5, ..PLAIN }, [16.0, 1.0, 64.0, 4.0, 1.0]),
            (SampleSpec { temperature: 2.0, top_k: 3, ..PLAIN }, [2.0, 0.0, 8f64.sqrt(), 2f64.sqrt(), 0.0]),
            (SampleSpec { top_k: 4, ..PLAIN }, [4.0, 1.0, 8.0, 2.0, 1.0]),
            (SampleSpec { temperature: 0.5, top_p: 0.7, ..PLAIN }, [16.0, 0.0, 64.0, 0.0, 0.0]),
            (SampleSpec { temperature: 0.5, min_p: 0.2, ..PLAIN }, [16.0, 0.0, 64.0, 4.0, 0.0]),
        ];
        for (spec, weights) in cases {
            let positions = chi_square((0..DRAWS).map(|i| sample(&LOGITS, &spec, i)), &weights);
            let sequences =
                chi_square((0..DRAWS).map(|sequence| sample(&LOGITS, &SampleSpec { sequence, ..spec }, 5)), &weights);
            let seeds =
                chi_square((0..DRAWS).map(|i| sample(&LOGITS, &SampleSpec { seed: [i, 0], ..spec }, 5)), &weights);
            assert!(positions < 1.0 && sequences < 1.0 && seeds < 1.0, "{spec:?}: {positions} {sequences} {seeds}");
        }
    }

    #[test]
    fn the_chi_square_rejects_a_slightly_wrong_temperature() {
        let spec = SampleSpec { temperature: 0.95, ..PLAIN };
        assert!(chi_square((0..DRAWS).map(|i| sample(&LOGITS, &spec, i)), &[4.0, 1.0, 8.0, 2.0, 1.0]) > 1.5);
    }

    #[test]
    fn neighbouring_sequences_and_positions_are_independent() {
        let at = |sequence, position| sample(&[0.0; 4], &SampleSpec { sequence, ..PLAIN }, position);
        let sequences = chi_square((0..DRAWS).map(|i| at(0, i) * 4 + at(1, i)), &[1.0; 16]);
        let positions = chi_square((0..DRAWS).map(|i| at(0, 2 * i) * 4 + at(0, 2 * i + 1)), &[1.0; 16]);
        assert!(sequences < 1.0 && positions < 1.0, "{sequences} {positions}");
    }

    /// Ids that a separate Python program drew from the definition, with its own Threefry
    /// implementation.
    #[test]
    fn draws_of_an_independent_implementation() {
        let flat = |seed, sequence| {
            [0, 1, 2, 3, 4].map(|position| sample(&[0.0; 1000], &SampleSpec { seed, sequence, ..PLAIN }, position))
        };
        assert_eq!(flat([1, 2], 3), [143, 766, 940, 644, 387]);
        assert_eq!(flat([1, 2], 0), [110, 979, 417, 260, 762]);
        assert_eq!(flat([2, 1], 3), [78, 388, 350, 564, 456]);
        let ramp: Vec<f32> = (0..1000).map(|id| id as f32 / 100.0).collect();
        let spec = SampleSpec { temperature: 0.5, seed: [0xdead_beef, 7], sequence: 1, ..PLAIN };
        assert_eq!([0, 1, 4096, u32::MAX].map(|position| sample(&ramp, &spec, position)), [998, 870, 943, 967]);
    }

    #[test]
    fn no_temperature_is_greedy_under_any_filter() {
        let spec = SampleSpec { temperature: 0.0, top_k: 3, top_p: 0.5, ..PLAIN };
        assert!((0..100).all(|position| sample(&[1.0, 3.0, 3.0, f32::NAN], &spec, position) == 1));
    }

    #[test]
    fn nan_and_minus_infinity_are_never_drawn() {
        let logits = [f32::NAN, 0.0, f32::NEG_INFINITY, 0.0];
        assert!((0..1000).all(|position| sample(&logits, &PLAIN, position) % 2 == 1));
        assert_eq!(sample(&[f32::NEG_INFINITY; 3], &PLAIN, 9), 0);
    }

    /// At these positions the 24 bits of an id are all zeros or all ones. Then u is 2^-25 or 1 -
    /// 2^-25, and g lies in -2.86..17.33.
    #[test]
    fn extreme_bits_give_finite_noise() {
        for (position, id, bits) in
            [(5_172_989, 0, 0), (14_933_683, 0, 0xff_ffff), (23_688_935, 1, 0), (8_708_870, 1, 0xff_ffff)]
        {
            assert_eq!(threefry2x32(PLAIN.seed, [position, id])[0] >> 8, bits);
            assert_eq!(sample(&[0.0, 30.0], &PLAIN, position), 1);
            assert_eq!(sample(&[30.0, 0.0], &PLAIN, position), 0);
        }
    }

    #[test]
    fn a_vocabulary_of_one() {
        assert_eq!(sample(&[-7.0], &SampleSpec { top_k: 1, top_p: 0.5, min_p: 0.5, ..PLAIN }, 3), 0);
    }
}
