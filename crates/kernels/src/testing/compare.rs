//! How an output of a parity case is compared with its reference.

/// What must agree between two executors.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// Floats, to the kernel's bound of the normalised mean squared error.
    #[default]
    Error,
    /// Words, which must all be equal: an id has no tolerance.
    Exact,
    /// Rows of `k` activations in 8 bits: the f32 values of the quants are compared, as in
    /// [`Compare::Error`]. A value half way between two quants is decided by its last bits, so one
    /// element in [`TURNED`], and one more, may be the neighbouring quant.
    Packed { k: u32 },
    /// Words of two f16 each, compared as f32, as in [`Compare::Error`].
    Halves,
    /// Rows of an id, which must be equal, and the bits of its log-probability, which may differ by
    /// [`LOG_PROB`].
    Drawn,
}

/// Elements in 8 bits per element that may be rounded the other way.
pub const TURNED: usize = 100;

/// Largest difference of log-probabilities; below -1 it is relative. It is the accuracy of an f32
/// sum over a vocabulary.
pub const LOG_PROB: f32 = 1e-5;

impl Compare {
    /// The error in the unit of the kernels' bounds. For outputs that must be equal it is 0 or
    /// infinity.
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
                return cpu_ref::nmse(&floats(expected), &floats(&turned_back(expected, got, k as usize)));
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

/// Packed rows of `k` elements, with the expected quants where the quants of `got` are their
/// neighbours. If too many are, the rows are returned unchanged.
fn turned_back(expected: &[u32], got: &[u32], k: usize) -> Vec<u32> {
    let (mut back, mut turned) = (got.to_vec(), 0);
    for (back, expected) in back.chunks_mut(k / 8 * 3).zip(expected.chunks(k / 8 * 3)) {
        for (word, expected) in back[..k / 4].iter_mut().zip(expected) {
            let (got, wanted) = (word.to_le_bytes(), expected.to_le_bytes());
            let differ = got.iter().zip(&wanted).filter(|(got, wanted)| got != wanted).count();
            if got.iter().zip(&wanted).all(|(got, wanted)| (*got as i8).abs_diff(*wanted as i8) <= 1) {
                (*word, turned) = (*expected, turned + differ);
            }
        }
    }
    if turned <= 1 + got.len() / 3 * 8 / TURNED { back } else { got.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::{Compare, TURNED};

    #[test]
    fn one_quant_in_a_hundred_may_be_its_neighbour() {
        let k = 256;
        let x: Vec<f32> = (0..k).map(|i| (i as f32 * 0.7).sin()).collect();
        let mut expected = vec![0; k / 8 * 3];
        cpu_ref::pack_q8(&x, k, &mut expected);
        let (packed, most) = (Compare::Packed { k: k as u32 }, 1 + k / TURNED);
        // Only the lowest bit of a quant differs: it is a neighbour. With two different bits it is
        // not.
        let with = |elements: usize, bits: u32| {
            let mut got = expected.clone();
            got[..elements].iter_mut().for_each(|word| *word ^= bits);
            packed.error(&expected, &got)
        };
        assert_eq!(with(most, 1), 0.0);
        assert!(with(most + 1, 1) > 1e-8);
        assert!(with(1, 2) > 1e-8);
        let mut scaled = expected.clone();
        scaled[k / 4] = (f32::from_bits(scaled[k / 4]) * 1.001).to_bits();
        assert!(packed.error(&expected, &scaled) > 1e-8);
    }

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
