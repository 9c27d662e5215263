//! How an output of a parity case is compared with its reference.

/// What two executors must agree on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// Floats, to the kernel's bound of the normalised mean squared error.
    #[default]
    Error,
    /// Words, all of them: ids have no nearly right.
    Exact,
    /// Rows of `k` activations in 8 bits: the floats that they stand for, as [`Compare::Error`]. Where a value lies between two
    /// quants, its last bits decide.
    Packed { k: u32 },
    /// Words of two f16 each: these as floats, as [`Compare::Error`].
    Halves,
    /// Rows of an id, exactly, and the bits of its log-probability, to within [`LOG_PROB`].
    Drawn,
}

/// Largest difference of log-probabilities, relative where they are below -1. It is what f32 leaves of a sum over a vocabulary.
pub const LOG_PROB: f32 = 1e-5;

impl Compare {
    /// The error in the measure of the kernels' bounds: for what must agree, none or infinity.
    ///
    /// # Panics
    /// When the sizes differ.
    #[must_use]
    pub fn error(self, expected: &[u32], got: &[u32]) -> f64 {
        assert_eq!(got.len(), expected.len(), "an output of another size");
        let agree = match self {
            Self::Error => return cpu_ref::nmse(bytemuck::cast_slice(expected), bytemuck::cast_slice(got)),
            Self::Packed { k } => {
                let floats = |words: &[u32]| {
                    let mut floats = vec![0.0; words.len() / 3 * 8];
                    cpu_ref::unpack_q8(words, k as usize, &mut floats);
                    floats
                };
                return cpu_ref::nmse(&floats(expected), &floats(got));
            }
            Self::Halves => {
                let floats = |words: &[u32]| -> Vec<f32> {
                    words.iter().flat_map(|w| [*w as u16, (w >> 16) as u16]).map(|bits| half::f16::from_bits(bits).to_f32()).collect()
                };
                return cpu_ref::nmse(&floats(expected), &floats(got));
            }
            Self::Exact => got == expected,
            Self::Drawn => got.chunks(2).zip(expected.chunks(2)).all(|(got, expected)| {
                let [a, b] = [f32::from_bits(got[1]), f32::from_bits(expected[1])];
                got[0] == expected[0] && (a - b).abs() <= LOG_PROB * b.abs().max(1.0)
            }),
        };
        if agree { 0.0 } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::Compare;

    #[test]
    fn neighbouring_ids_are_not_nearly_right() {
        assert_eq!(Compare::Exact.error(&[100_000, 7], &[100_000, 7]), 0.0);
        assert_eq!(Compare::Exact.error(&[100_000, 7], &[100_001, 7]), f64::INFINITY);
    }

    #[test]
    fn drawn_rows_hold_the_id_exactly_and_the_logarithm_closely() {
        let row = |id: u32, log_prob: f32| [id, log_prob.to_bits()];
        assert_eq!(Compare::Drawn.error(&row(3, -0.5), &row(3, -0.500_009)), 0.0);
        assert_eq!(Compare::Drawn.error(&row(3, -0.5), &row(3, -0.500_02)), f64::INFINITY);
        assert_eq!(Compare::Drawn.error(&row(3, -0.5), &row(2, -0.5)), f64::INFINITY);
        assert_eq!(Compare::Drawn.error(&row(3, -0.5), &row(3, f32::NAN)), f64::INFINITY);
        assert_eq!(Compare::Drawn.error(&row(3, -100.0), &row(3, -100.0009)), 0.0);
    }
}
