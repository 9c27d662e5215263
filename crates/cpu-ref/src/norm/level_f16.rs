//! Rows in f16 whose parts have separate scales, converted to one scale per row.

use half::f16;

/// Converts rows of `k` elements in parts of `each` elements to one scale per row:
/// `scales[t] = max_b tops[t, b]`. Every f16 value of part b is multiplied by
/// `tops[t, b] / scales[t]` and rounded to the nearest. `tops [T, k / each]` are the scales of the
/// parts: powers of two, or 0 for parts of zeros. `words [T, k / 2]` holds two f16 values per word,
/// the first in the low half.
pub fn level_f16(tops: &[f32], k: usize, each: usize, scales: &mut [f32], words: &mut [u32]) {
    crate::check::len("level_f16: tops", tops.len(), scales.len() * (k / each));
    crate::check::len("level_f16: words", words.len(), scales.len() * k / 2);
    for ((tops, scale), words) in tops.chunks_exact(k / each).zip(scales).zip(words.chunks_exact_mut(k / 2)) {
        let most = tops.iter().fold(0.0_f32, |most, top| most.max(*top));
        *scale = most;
        let by = if most == 0.0 { 1.0 } else { most };
        for (top, words) in tops.iter().zip(words.chunks_exact_mut(each / 2)) {
            let leveled =
                |bits: u32| u32::from(f16::from_f32(f16::from_bits(bits as u16).to_f32() * (top / by)).to_bits());
            words.iter_mut().for_each(|word| *word = leveled(*word & 0xffff) | leveled(*word >> 16) << 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_values_under_the_largest_scale() {
        let pair = |a: f32, b: f32| u32::from(f16::from_f32(a).to_bits()) | u32::from(f16::from_f32(b).to_bits()) << 16;
        let (mut scales, mut words) = ([0.0; 2], [pair(8.0, -3.0), pair(1.0, 0.5), 0, 0]);
        level_f16(&[2.0, 512.0, 0.0, 0.0], 4, 2, &mut scales, &mut words);
        assert_eq!(scales, [512.0, 0.0]);
        assert_eq!(words, [pair(0.03125, -0.01171875), pair(1.0, 0.5), 0, 0]);
    }
}
