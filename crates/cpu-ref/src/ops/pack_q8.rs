//! Activations in 8 bits, the operand of matrix products with quantized weights.

/// Elements that share a scale.
const BLOCK: usize = 32;
/// Factor on values before they are squared for a block's share, so that the squares of large
/// values stay finite.
const SMALLER: f64 = 1.0 / (1_u64 << 32) as f64;

/// Packs rows of `k` elements: every block of 32 becomes quants q in -128..=127 and a scale d, so
/// that x is about d q.
///
/// For each row, `words` gets k / 4 words of quants (four per word, the first in the lowest byte),
/// then four words per block, as f32 bits: d, d times the sum of the first 16 quants, d times the
/// sum of the last 16 quants, and zero. The fourth word is the block's share of a norm whose factor
/// the reader applies ([`unpack_q8`]); there is no norm here. d is the largest magnitude times
/// 1/127, rounded up to 16 bits of significand; q is x / d rounded to the nearest, ties up. Blocks
/// whose magnitudes are below 1e-30 become zeros. The layout follows ggml's `block_q8_1`, with f32
/// scales.
pub fn pack_q8(x: &[f32], k: usize, words: &mut [u32]) {
    crate::check::rows("pack_q8: x", x.len(), k);
    assert!(k.is_multiple_of(BLOCK), "pack_q8: rows of {k} elements");
    crate::check::len("pack_q8: words", words.len(), x.len() / 8 * 3);
    for (x, words) in x.chunks_exact(k).zip(words.chunks_exact_mut(k / 8 * 3)) {
        let (quants, scales) = words.split_at_mut(k / 4);
        for ((x, quants), scale) in x.chunks_exact(BLOCK).zip(quants.chunks_exact_mut(8)).zip(scales.chunks_exact_mut(4)) {
            block(x, quants, scale);
        }
    }
}

fn block(x: &[f32], quants: &mut [u32], scale: &mut [u32]) {
    let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let d = if largest < 1e-30 { 0.0 } else { f32::from_bits((largest * (1.0 / 127.0)).to_bits().wrapping_add(255) & !255) };
    let mut sums = [0; 2];
    quants.fill(0);
    for (i, &x) in x.iter().enumerate() {
        let q = if d == 0.0 { 0 } else { (f64::from(x) / f64::from(d) + 0.5).floor().clamp(-128.0, 127.0) as i32 };
        quants[i / 4] |= u32::from(q as u8) << (8 * (i % 4));
        sums[i / 16] += q;
    }
    let sum = |n: usize| (d * sums[n] as f32).to_bits();
    scale.copy_from_slice(&[d.to_bits(), sum(0), sum(1), 0]);
}

/// Converts packed rows of `k` elements back to f32.
///
/// If the last words of a row's blocks are not zero, the row is the output of a norm whose factor
/// is not yet applied. These words are then the blocks' shares of s = 2^-64 (mean of squares +
/// eps), and every value is divided by sqrt(2^64 s).
pub fn unpack_q8(words: &[u32], k: usize, x: &mut [f32]) {
    crate::check::rows("unpack_q8: x", x.len(), k);
    crate::check::len("unpack_q8: words", words.len(), x.len() / 8 * 3);
    for (words, x) in words.chunks_exact(k / 8 * 3).zip(x.chunks_exact_mut(k)) {
        let shares = words[k / 4..].chunks_exact(4).map(|block| f64::from(f32::from_bits(block[3])));
        let sum: f64 = shares.sum();
        let factor = if sum == 0.0 { 1.0 } else { SMALLER / sum.sqrt() };
        for (i, x) in x.iter_mut().enumerate() {
            let q = (words[i / 4] >> (8 * (i % 4))) as u8 as i8;
            *x = (f64::from(f32::from_bits(words[k / 4 + i / BLOCK * 4])) * f64::from(q) * factor) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_within_half_a_step_and_the_largest_nearly_whole() {
        let x: Vec<f32> = (0..64).map(|i| (i as f32 - 20.5) * if i < 32 { 1.0 } else { 1e-3 }).collect();
        let (mut words, mut back) = (vec![0; 24], vec![0.0; 64]);
        pack_q8(&x, 64, &mut words);
        unpack_q8(&words, 64, &mut back);
        for (n, (x, back)) in x.chunks(32).zip(back.chunks(32)).enumerate() {
            let d = f32::from_bits(words[16 + 4 * n]);
            let largest = x.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
            assert!(d >= largest / 127.0 && d < largest / 126.9, "{d}");
            assert!(x.iter().zip(back).all(|(x, y)| (x - y).abs() <= d / 2.0), "{x:?} {back:?}");
        }
    }

    #[test]
    fn the_sums_are_those_of_the_halves() {
        let x: Vec<f32> = (0..32).map(|i| if i < 16 { 127.0 } else { -1.0 }).collect();
        let mut words = [0; 12];
        pack_q8(&x, 32, &mut words);
        assert_eq!(words[8..].iter().map(|w| f32::from_bits(*w)).collect::<Vec<_>>(), [1.0, 16.0 * 127.0, -16.0, 0.0]);
    }

    #[test]
    fn the_shares_of_a_norm_divide_by_its_root() {
        let mut words = vec![0; 24];
        pack_q8(&[3.0; 64], 64, &mut words);
        // 9 + 7 is the mean of squares plus eps; each block holds half of it.
        for at in [19, 23] {
            words[at] = ((8.0 * SMALLER * SMALLER) as f32).to_bits();
        }
        let mut back = vec![0.0; 64];
        unpack_q8(&words, 64, &mut back);
        assert!(back.iter().all(|x| (x - 0.75).abs() < 1e-4), "{back:?}");
    }

    #[test]
    fn blocks_of_nearly_nothing_become_zeros() {
        let mut words = [7; 12];
        pack_q8(&[1e-31; 32], 32, &mut words);
        assert_eq!(words, [0; 12]);
    }
}
