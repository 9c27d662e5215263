//! Activations in f16 with a power of two as scale per row, the operand of matrix products with
//! many rows.

use half::f16;

/// Packs rows of `k` elements, k even. `scales[t]` is 2^e with 2^13 <= max_d |x[t, d]| / 2^e <
/// 2^14, or 0 if all magnitudes of the row are below 7.9e-31, which count as zeros. `words`
/// [T, k / 2] holds x / scale in f16, rounded to the nearest, two values per word, the first in the
/// low half.
pub fn pack_f16(x: &[f32], k: usize, scales: &mut [f32], words: &mut [u32]) {
    crate::check::len("pack_f16: x", x.len(), scales.len() * k);
    crate::check::len("pack_f16: words", words.len(), x.len() / 2);
    for ((x, scale), words) in x.chunks_exact(k).zip(scales).zip(words.chunks_exact_mut(k / 2)) {
        let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        let zeros = largest < 7.9e-31;
        let by = if zeros { 1.0 } else { f32::from_bits(((largest.to_bits() >> 23) - 13) << 23) };
        *scale = if zeros { 0.0 } else { by };
        for (pair, word) in x.chunks_exact(2).zip(words) {
            let half = |v: f32| u32::from(f16::from_f32(v / by).to_bits());
            *word = half(pair[0]) | half(pair[1]) << 16;
        }
    }
}

/// Converts `x` to f16 without scales.
pub fn pack_f16_as_is(x: &[f32], words: &mut [u32]) {
    crate::check::len("pack_f16_as_is: words", words.len(), x.len() / 2);
    for (pair, word) in x.chunks_exact(2).zip(words) {
        let half = |v: f32| u32::from(f16::from_f32(v).to_bits());
        *word = half(pair[0]) | half(pair[1]) << 16;
    }
}

/// Converts the rows of `k` elements that [`pack_f16`] wrote back to f32.
pub fn unpack_f16(scales: &[f32], words: &[u32], k: usize, x: &mut [f32]) {
    crate::check::len("unpack_f16: words", words.len(), x.len() / 2);
    for ((x, scale), words) in x.chunks_exact_mut(k).zip(scales).zip(words.chunks_exact(k / 2)) {
        for (i, x) in x.iter_mut().enumerate() {
            *x = f16::from_bits((words[i / 2] >> (16 * (i % 2))) as u16).to_f32() * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_magnitude_lands_in_its_octave_and_all_come_back() {
        let x = [1.0, -3e7, 1e-20, 1e-21, 16383.9, 0.0, 0.0, 0.0];
        let (mut scales, mut words, mut back) = ([0.0; 4], [0; 4], [0.0; 8]);
        pack_f16(&x, 2, &mut scales, &mut words);
        for (scale, largest) in scales.iter().zip([3e7_f32, 1e-20, 16383.9]) {
            assert!((8192.0..16384.0).contains(&(largest / scale)), "{largest} / {scale}");
        }
        assert_eq!(scales[3], 0.0);
        unpack_f16(&scales, &words, 2, &mut back);
        for (pair, back) in x.chunks(2).zip(back.chunks(2)) {
            let step = pair[0].abs().max(pair[1].abs()) / 2048.0;
            assert!((pair[0] - back[0]).abs() <= step && (pair[1] - back[1]).abs() <= step, "{pair:?} {back:?}");
        }
    }
}
