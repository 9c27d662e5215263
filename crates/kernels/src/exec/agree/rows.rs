//! The comparison of two results, row by row.

use cpu_ref::{KvType, RowError, worst_row};
use half::f16;

/// Elements per element that may be rounded to a neighbour of the expected value.
pub const TURNED: u64 = 100;

/// The smallest number of elements that are compared by the sum of their squares.
const LEAST: usize = 32;

/// Differences, relative to the RMS of a row, that are no rounding to a neighbour in f16.
const FINE: f64 = 1e-5;

/// The step of a scale of 16 bits, in bits of an f32.
const SCALE_STEP: u32 = 256;

/// Largest difference of log-probabilities. Below -1 it is relative. It is the accuracy of an f32
/// sum over a vocabulary.
pub const LOG_PROB: f32 = 1e-5;

/// The worst row of one or more results.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// The index of the row with the largest NMSE.
    pub row: usize,
    /// The largest NMSE of a row; infinite where values must be equal and are not.
    pub nmse: f64,
    /// The largest difference of an element, relative to the RMS of its expected row.
    pub peak: f64,
    /// Elements that are stored in fewer bits than they were computed in.
    pub rounded: u64,
    /// Elements of these that are the neighbour of the expected value. They count as equal.
    pub turned: u64,
}

impl Difference {
    /// The largest NMSE of a row, or the NMSE of a bound that the largest difference of an element
    /// just meets, if that is larger. `peak` is the largest difference of an element, in units of
    /// the root of the bound.
    #[must_use]
    pub fn error(&self, peak: f64) -> f64 {
        self.nmse.max((self.peak / peak).powi(2))
    }

    /// Whether every row is within `bound`, and every element within `peak` times its root.
    #[must_use]
    pub fn within(&self, bound: f64, peak: f64) -> bool {
        self.error(peak) <= bound
    }

    /// Whether at most one rounded element in [`TURNED`], and one more, was turned.
    #[must_use]
    pub fn few_turned(&self) -> bool {
        self.turned <= 1 + self.rounded / TURNED
    }

    /// Takes in the difference of another result.
    pub fn worsen(&mut self, other: Self) {
        let worse = if other.nmse > self.nmse { other } else { *self };
        *self = Self {
            row: worse.row,
            nmse: worse.nmse,
            peak: self.peak.max(other.peak),
            rounded: self.rounded + other.rounded,
            turned: self.turned + other.turned,
        };
    }

    /// No difference, or an infinite one in the row at this index.
    fn exact(unequal: Option<usize>) -> Self {
        let error = if unequal.is_some() { f64::INFINITY } else { 0.0 };
        Self { row: unequal.unwrap_or(0), nmse: error, peak: error, ..Self::default() }
    }
}

impl From<RowError> for Difference {
    fn from(RowError { row, nmse, peak }: RowError) -> Self {
        Self { row, nmse, peak, ..Self::default() }
    }
}

/// Compares rows of `width` f32.
#[must_use]
pub fn of_floats(width: usize, expected: &[f32], got: &[f32]) -> Difference {
    // All elements of a short row may be small by cancellation, while their errors are as large as
    // the errors of other rows. So several short rows are judged as one row.
    let together = LEAST.div_ceil(width).clamp(1, (expected.len() / width).max(1));
    let whole = expected.len() / width / together * together * width;
    let mut difference: Difference = worst_row(&expected[..whole], &got[..whole], width * together).into();
    difference.row *= together;
    if whole < expected.len() {
        let last = expected.len() - (width * together).min(expected.len());
        difference.worsen(worst_row(&expected[last..], &got[last..], expected.len() - last).into());
    }
    difference
}

/// Compares rows of `width` words, which must be equal: an id has no tolerance.
#[must_use]
pub fn of_words(width: usize, expected: &[u32], got: &[u32]) -> Difference {
    assert_eq!(got.len(), expected.len(), "a result of another size");
    Difference::exact(expected.iter().zip(got).position(|(a, b)| a != b).map(|at| at / width))
}

/// Compares rows of an id, which must be equal, and the bits of its log-probability, which may
/// differ by [`LOG_PROB`].
#[must_use]
pub fn of_draws(expected: &[u32], got: &[u32]) -> Difference {
    assert_eq!(got.len(), expected.len(), "a result of another size");
    let agree = |(got, expected): (&[u32], &[u32])| {
        let [a, b] = [f32::from_bits(got[1]), f32::from_bits(expected[1])];
        got[0] == expected[0] && (a - b).abs() <= LOG_PROB * b.abs().max(1.0)
    };
    Difference::exact(got.chunks(2).zip(expected.chunks(2)).position(|pair| !agree(pair)))
}

/// Compares rows of `width` words of two f16 each. Neighbouring numbers count as equal.
#[must_use]
pub fn of_halves(width: usize, expected: &[u32], got: &[u32]) -> Difference {
    let halves = |words: &[u32]| -> Vec<u16> { words.iter().flat_map(|w| [*w as u16, (w >> 16) as u16]).collect() };
    of_f16(2 * width, &halves(expected), &halves(got))
}

/// Compares rows of `k` f32 that are f16 values times the scale of their row, a power of two:
/// `scales` has the expected scales and the device's scales. The device's scale of a row may be the
/// next power of two, because the largest element of the row may be next to a power of two. It may
/// also be a power up to `larger` times as large. A row of zeros has the scale 0.
#[must_use]
pub fn of_scaled_halves(
    k: usize,
    [scales, others]: [&[f32]; 2],
    larger: f32,
    expected: &[f32],
    got: &[f32],
) -> Difference {
    let near = |(scale, other): (&f32, &f32)| {
        let times = other / scale;
        let is_power = times.to_bits() & 0x007f_ffff == 0;
        other == scale || is_power && (0.5..=larger).contains(&times)
    };
    if let Some(row) = scales.iter().zip(others).position(|pair| !near(pair)) {
        return Difference::exact(Some(row));
    }
    let bits = |values: &[f32]| -> Vec<u16> {
        let rows = values.chunks(k).zip(scales.iter().map(|scale| if *scale == 0.0 { 1.0 } else { *scale }));
        rows.flat_map(|(row, scale)| row.iter().map(move |x| f16::from_f32(x / scale).to_bits())).collect()
    };
    of_f16(k, &bits(expected), &bits(got))
}

/// Compares rows of `width` f16, given by their bits.
fn of_f16(width: usize, expected: &[u16], got: &[u16]) -> Difference {
    assert_eq!(got.len(), expected.len(), "a result of another size");
    let floats = |bits: &[u16]| -> Vec<f32> { bits.iter().map(|bits| f16::from_bits(*bits).to_f32()).collect() };
    let (floats, mut back, mut turned) = (floats(expected), floats(got), 0);
    for ((floats, back), bits) in
        floats.chunks(width).zip(back.chunks_mut(width)).zip(expected.chunks(width).zip(got.chunks(width)))
    {
        let rms = (floats.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / width as f64).sqrt();
        for ((x, back), (a, b)) in floats.iter().zip(back).zip(bits.0.iter().zip(bits.1)) {
            // The steps of small elements are finer than the error of an f32 computation.
            if f64::from((*x - *back).abs()) > FINE * rms && order(*a).abs_diff(order(*b)) == 1 {
                (*back, turned) = (*x, turned + 1);
            }
        }
    }
    let difference: Difference = worst_row(&floats, &back, width).into();
    Difference { rounded: got.len() as u64, turned, ..difference }
}

/// The rank of an f16 among all f16 values. The ranks of neighbours differ by one, also across
/// zero.
fn order(bits: u16) -> i32 {
    if bits & 0x8000 == 0 { i32::from(bits) } else { -i32::from(bits & 0x7fff) }
}

/// Compares packed rows of `k` elements. The f32 values of the quants are compared. The last bits
/// of a value half way between two quants decide its quant. The last bits of the largest value of a
/// block decide its scale, which is rounded up to a step of 16 bits. So neighbours count as equal.
#[must_use]
pub fn of_packed(k: usize, expected: &[u32], got: &[u32]) -> Difference {
    let (mut back, mut turned) = (got.to_vec(), 0);
    for (back, expected) in back.chunks_mut(k / 8 * 3).zip(expected.chunks(k / 8 * 3)) {
        let (back, scales) = back.split_at_mut(k / 4);
        for (word, expected) in back.iter_mut().zip(expected) {
            turned += turn_back(word, *expected);
        }
        for (scale, expected) in scales.chunks_exact_mut(4).zip(expected[k / 4..].chunks_exact(4)) {
            if scale[0].abs_diff(expected[0]) == SCALE_STEP {
                scale[..3].copy_from_slice(&expected[..3]);
                turned += 1;
            }
        }
    }
    let floats = |words: &[u32]| {
        let mut floats = vec![0.0; words.len() / 3 * 8];
        cpu_ref::unpack_q8(words, k, &mut floats);
        floats
    };
    let difference: Difference = worst_row(&floats(expected), &floats(&back), k).into();
    Difference { rounded: got.len() as u64 / 3 * 8, turned, ..difference }
}

/// Replaces four quants by the expected ones, if all are at most their neighbours. Returns how many
/// differed then.
fn turn_back(word: &mut u32, expected: u32) -> u64 {
    let (got, wanted) = (word.to_le_bytes(), expected.to_le_bytes());
    if got.iter().zip(&wanted).any(|(got, wanted)| (*got as i8).abs_diff(*wanted as i8) > 1) {
        return 0;
    }
    *word = expected;
    got.iter().zip(&wanted).filter(|(got, wanted)| got != wanted).count() as u64
}

/// Compares all rows of a KV state. Values that the state rounds may be neighbours.
#[must_use]
pub fn of_state(ty: KvType, width: usize, expected: &[u8], got: &[u8]) -> Difference {
    let row = ty.row_bytes(width);
    if ty == KvType::F32 {
        let floats = |bytes: &[u8]| -> Vec<f32> { bytemuck::pod_collect_to_vec(bytes) };
        return of_floats(row / 4, &floats(expected), &floats(got));
    }
    // A deep cache is mostly rows that the step does not write. Equal bytes are equal values.
    assert_eq!(got.len(), expected.len(), "a state of another size");
    let pairs = expected.chunks_exact(row).zip(got.chunks_exact(row));
    let other: Vec<usize> = pairs.enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    let [of, by] = [expected, got]
        .map(|bytes| other.iter().flat_map(|at| &bytes[at * row..(at + 1) * row]).copied().collect::<Vec<u8>>());
    let difference = match ty {
        KvType::F32 | KvType::F16 => {
            let halves = |bytes: &[u8]| -> Vec<u16> { bytemuck::pod_collect_to_vec(bytes) };
            of_f16(row / 2, &halves(&of), &halves(&by))
        }
        KvType::Q8_0 => of_q8_0(width, &of, &by),
    };
    let elements = if ty == KvType::Q8_0 { width } else { row / 2 };
    Difference {
        row: other.get(difference.row).copied().unwrap_or(0),
        rounded: (got.len() / row) as u64 * elements as u64,
        ..difference
    }
}

/// Compares rows of `width` elements in 8 bits: quants, then scales.
fn of_q8_0(width: usize, expected: &[u8], got: &[u8]) -> Difference {
    let (mut back, mut turned) = (got.to_vec(), 0);
    let row = KvType::Q8_0.row_bytes(width);
    for (back, expected) in back.chunks_exact_mut(row).zip(expected.chunks_exact(row)) {
        for (back, expected) in back.iter_mut().zip(expected).take(width) {
            if (*back as i8).abs_diff(*expected as i8) == 1 {
                (*back, turned) = (*expected, turned + 1);
            }
        }
    }
    let floats = |bytes: &[u8]| {
        let rows = bytes.len() / row;
        let mut floats = vec![0.0; rows * width];
        floats.chunks_mut(width).enumerate().for_each(|(at, y)| cpu_ref::kv_read(bytes, KvType::Q8_0, width, at, y));
        floats
    };
    let difference: Difference = worst_row(&floats(expected), &floats(&back), width).into();
    Difference { rounded: (got.len() / row) as u64 * width as u64, turned, ..difference }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::PEAK;

    #[test]
    fn one_quant_in_a_hundred_may_be_its_neighbour() {
        let k = 256;
        let x: Vec<f32> = (0..k).map(|i| (i as f32 * 0.7).sin()).collect();
        let mut expected = vec![0; k / 8 * 3];
        cpu_ref::pack_q8(&x, k, &mut expected);
        let most = 1 + k / TURNED as usize;
        // Only the lowest bit of a quant differs: it is a neighbour. With two different bits it is
        // not.
        let with = |elements: usize, bits: u32| {
            let mut got = expected.clone();
            got[..elements].iter_mut().for_each(|word| *word ^= bits);
            of_packed(k, &expected, &got)
        };
        assert!(with(most, 1).within(0.0, PEAK) && with(most, 1).few_turned());
        assert!(!with(most + 1, 1).few_turned());
        assert!(!with(1, 2).within(1e-8, PEAK));
        let with_scale = |steps: u32| {
            let mut got = expected.clone();
            got[k / 4] += steps * SCALE_STEP;
            of_packed(k, &expected, &got)
        };
        assert!(with_scale(1).within(0.0, PEAK) && !with_scale(2).within(1e-10, PEAK));
        let mut scaled = expected.clone();
        scaled[k / 4] = (f32::from_bits(scaled[k / 4]) * 1.001).to_bits();
        assert!(!of_packed(k, &expected, &scaled).within(1e-8, PEAK));
    }

    #[test]
    fn one_wrong_element_of_a_long_row_is_beyond_the_bound() {
        let expected: Vec<f32> = (0..12_288).map(|i| (i as f32 * 0.7).sin()).collect();
        let with = |wrong: f32| {
            let mut got = expected.clone();
            got[9_000] += wrong;
            of_floats(got.len(), &expected, &got)
        };
        // The RMS of the row is 0.71. The mean over the row hides the element.
        let planted = with(5e-4);
        assert!(planted.nmse < 1e-10 && planted.peak > 7e-4 && !planted.within(1e-10, PEAK), "{planted:?}");
        assert!(with(5e-5).within(1e-10, PEAK));
        // Errors of almost the largest RMS are within: sums of twelve random numbers are normal.
        let mut state = 1_u32;
        let mut uniform = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let got: Vec<f32> =
            expected.iter().map(|x| x + 6e-6 * ((0..12).map(|_| uniform()).sum::<f32>() - 6.0)).collect();
        let all = of_floats(got.len(), &expected, &got);
        assert!(all.nmse > 5e-11 && all.within(1e-10, PEAK), "{all:?}");
    }

    #[test]
    fn neighbouring_ids_are_not_nearly_right() {
        assert!(of_words(1, &[100_000, 7], &[100_000, 7]).within(0.0, PEAK));
        let unequal = of_words(1, &[7, 100_000], &[7, 100_001]);
        assert!(!unequal.within(1.0, PEAK) && unequal.row == 1);
    }

    #[test]
    fn drawn_rows_hold_the_id_exactly_and_the_logarithm_closely() {
        let row = |id: u32, log_prob: f32| [id, log_prob.to_bits()];
        let agree = |a: [u32; 2], b: [u32; 2]| of_draws(&a, &b).within(0.0, PEAK);
        assert!(agree(row(3, -0.5), row(3, -0.500_009)));
        assert!(!agree(row(3, -0.5), row(3, -0.500_02)));
        assert!(!agree(row(3, -0.5), row(2, -0.5)));
        assert!(!agree(row(3, -0.5), row(3, f32::NAN)));
        assert!(agree(row(3, -100.0), row(3, -100.0009)));
    }

    #[test]
    fn neighbours_in_f16_count_as_equal_and_others_do_not() {
        let expected: Vec<u16> = (0..200).map(|i| f16::from_f32(i as f32 * 0.3 - 20.0).to_bits()).collect();
        let with = |elements: usize, steps: u16| {
            let mut got = expected.clone();
            got[..elements].iter_mut().for_each(|bits| *bits += steps);
            of_f16(100, &expected, &got)
        };
        assert_eq!(with(0, 0), Difference { rounded: 200, ..Difference::default() });
        assert!(with(3, 1).within(0.0, PEAK) && with(3, 1).few_turned() && !with(4, 1).few_turned());
        assert!(!with(1, 2).within(1e-10, PEAK));
        let [zero, below] = [0.0, -f64::from(f16::MIN_POSITIVE_SUBNORMAL)].map(|x| f16::from_f64(x).to_bits());
        assert_eq!(of_f16(1, &[below], &[zero]).turned, 1);
        let large = f16::from_f32(100.0).to_bits();
        let small = of_f16(2, &[below, large], &[zero, large]);
        assert!(small.turned == 0 && small.within(1e-10, PEAK));
    }

    #[test]
    fn a_row_in_f16_may_have_the_next_scale_or_a_coarser_one_and_no_other() {
        let x = [1.5, -0.25, 100.0, 3.0];
        let with = |scale: f32| of_scaled_halves(2, [&[1.0, 64.0], &[1.0, scale]], 2.0, &x, &x);
        for scale in [32.0, 64.0, 128.0] {
            assert!(with(scale).within(0.0, PEAK), "{scale}");
        }
        for scale in [0.0, 16.0, 65.0, 256.0, f32::NAN] {
            assert_eq!((with(scale).row, with(scale).nmse), (1, f64::INFINITY), "{scale}");
        }
        let coarse = |scale: f32| of_scaled_halves(2, [&[1.0, 64.0], &[1.0, scale]], 256.0, &x, &x);
        assert!(coarse(64.0 * 256.0).within(0.0, PEAK) && coarse(32.0).within(0.0, PEAK));
        for scale in [16.0, 96.0, 64.0 * 512.0, -128.0] {
            assert_eq!(coarse(scale).row, 1, "{scale}");
        }
        assert!(of_scaled_halves(2, [&[0.0], &[0.0]], 256.0, &[0.0; 2], &[0.0; 2]).within(0.0, PEAK));
        assert!(!of_scaled_halves(2, [&[0.0], &[1.0]], 256.0, &[0.0; 2], &[0.0; 2]).within(1.0, PEAK));
    }

    #[test]
    fn short_rows_are_taken_together_and_all_are_seen() {
        let expected: Vec<f32> = (0..75).map(|i| 1.0 + i as f32).collect();
        for width in [1, 3, 5, 25, 75] {
            for at in 0..75 {
                let mut got = expected.clone();
                got[at] = 0.0;
                let Difference { row, nmse, .. } = of_floats(width, &expected, &got);
                assert!(nmse > 1e-6 && row <= at / width, "{at} of {width}");
            }
            assert_eq!(of_floats(width, &expected, &expected), Difference::default());
        }
    }

    #[test]
    fn a_wrong_row_of_a_state_shows_whatever_its_type() {
        let (width, rows) = (64, 3);
        for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
            let mut expected = vec![0; rows * ty.row_bytes(width)];
            let values = |at: usize| -> Vec<f32> {
                (0..width).map(|i| ((i * 7 + at) as f32).sin() * 0.01_f32.powi(at as i32)).collect()
            };
            (0..rows).for_each(|at| cpu_ref::kv_append(&mut expected, ty, width, at, &values(at)));
            assert!(of_state(ty, width, &expected, &expected.clone()).within(0.0, PEAK));
            // The smallest row: the sum over all rows would hide it.
            let mut got = expected.clone();
            cpu_ref::kv_append(&mut got, ty, width, 2, &values(1).iter().map(|x| x * 0.01).collect::<Vec<_>>());
            assert!(!of_state(ty, width, &expected, &got).within(1e-4, PEAK), "{ty:?}");
        }
    }
}
