//! Choice of the next token.

use kernels::SampleParams;

/// Sampling parameters. The order is: penalties, top-k, top-p, min-p, temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 always takes the most probable token.
    pub temperature: f32,
    /// Keeps the k most probable tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the smallest set of tokens with at least this probability together; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens whose probability is below this fraction of the highest; 0 drops none.
    pub min_p: f32,
    /// Divides the logits of tokens seen before; 1 has no effect.
    pub repetition_penalty: f32,
    /// Subtracted from a token's logit for each earlier occurrence.
    pub frequency_penalty: f32,
    /// Subtracted once from the logit of every token seen before.
    pub presence_penalty: f32,
    /// The number of latest tokens that count as seen.
    pub last_n: u32,
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            last_n: 64,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Always the most probable token.
    #[must_use]
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// The parameters in the kernels' form, for one sequence slot.
    pub(crate) fn params(&self, sequence: u32) -> SampleParams {
        SampleParams {
            repetition: self.repetition_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            last_n: self.last_n,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            temperature: self.temperature,
            seed: [self.seed as u32, (self.seed >> 32) as u32],
            sequence,
            ..SampleParams::default()
        }
    }
}
