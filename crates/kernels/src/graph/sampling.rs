//! Sampling parameters from the host, one set per row of logits.

/// How the next id is chosen. The filters apply in the order of the fields. See
/// [`cpu_ref::SampleSpec`].
#[repr(C)]
#[derive(Copy, Clone, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct SampleParams {
    /// Positive logits of ids seen before are divided by it, and negative ones multiplied; 1 for
    /// none.
    pub repetition: f32,
    /// Subtracted per occurrence.
    pub frequency: f32,
    /// Subtracted once from every id seen before.
    pub presence: f32,
    /// Number of last positions that count as seen.
    pub last_n: u32,
    /// Keep the k largest logits; 0 for all.
    pub top_k: u32,
    /// Keep the smallest set with this total probability; 1 for all.
    pub top_p: f32,
    /// Drop ids whose probability is below this share of the largest; 0 for none.
    pub min_p: f32,
    /// Divisor of the logits; 0 takes the largest logit.
    pub temperature: f32,
    /// Key of the generator.
    pub seed: [u32; 2],
    /// Number of the sequence, so that sequences with the same seed draw different ids.
    pub sequence: u32,
    /// Pads the struct to a multiple of 16 bytes; zero.
    pub unused: u32,
}

/// Words of a [`SampleParams`].
pub const PARAM_WORDS: u32 = 12;

impl Default for SampleParams {
    /// Takes the largest logit, without penalties.
    fn default() -> Self {
        Self {
            repetition: 1.0,
            frequency: 0.0,
            presence: 0.0,
            last_n: 64,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            temperature: 0.0,
            seed: [0; 2],
            sequence: 0,
            unused: 0,
        }
    }
}

impl SampleParams {
    /// Whether the logits are changed before the filters.
    #[must_use]
    pub fn penalizes(&self) -> bool {
        self.last_n > 0 && (self.repetition != 1.0 || self.frequency != 0.0 || self.presence != 0.0)
    }

    /// These parameters in the form that the oracle takes.
    #[must_use]
    pub fn spec(&self) -> cpu_ref::SampleSpec {
        cpu_ref::SampleSpec {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition: self.repetition,
            frequency: self.frequency,
            presence: self.presence,
            last_n: self.last_n,
            seed: self.seed,
            sequence: self.sequence,
        }
    }
}
