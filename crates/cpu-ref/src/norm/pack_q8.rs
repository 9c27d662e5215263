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
/// the reader applies ([`unpack_q8`]). There is no norm here. d is the largest magnitude times
/// 1/127, rounded up to 16 bits of significand. q is x / d rounded to the nearest, ties up. Blocks
/// whose magnitudes are below 1e-30 become zeros. The layout follows ggml's `block_q8_1`, with f32
/// scales.
pub fn pack_q8(x: &[f32], k: usize, words: &mut [u32]) {
    crate::check::rows("pack_q8: x", x.len(), k);
    assert!(k.is_multiple_of(BLOCK), "pack_q8: rows of {k} elements");
    crate::check::len("pack_q8: words", words.len(), x.len() / 8 * 3);
    for (x, words) in x.chunks_exact(k).zip(words.chunks_exact_mut(k / 8 * 3)) {
        let (quants, scales) = words.split_at_mut(k / 4);
        for ((x, quants), scale) in
            x.chunks_exact(BLOCK).zip(quants.chunks_exact_mut(8)).zip(scales.chunks_exact_mut(4))
        {
            block(x, quants, scale);
        }
    }
}

fn block(x: &[f32], quants: &mut [u32], scale: &mut [u32]) {
    let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let d = if largest < 1e-30 {
        0.0
    } else {
        f32::from_bits((largest * (1.0 / 127.0)).to_bits().wrapping_add(255) & !255)
    };
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

/// Packs rows `h` times `w` as [`pack_q8`] does, as the input of a norm whose factor readers apply:
/// the last word of every block is its share of s = 2^-64 (mean of squares of the row of `h` +
/// eps).
pub fn norm_pack_q8(h: &[f32], w: Option<&[f32]>, k: usize, eps: f32, words: &mut [u32]) {
    crate::check::rows("norm_pack_q8: h", h.len(), k);
    let mut x = h.to_vec();
    if let Some(w) = w {
        crate::check::len("norm_pack_q8: w", w.len(), k);
        x.chunks_exact_mut(k).for_each(|x| x.iter_mut().zip(w).for_each(|(x, w)| *x *= w));
    }
    pack_q8(&x, k, words);
    for (h, words) in h.chunks_exact(k).zip(words.chunks_exact_mut(k / 8 * 3)) {
        for (h, scale) in h.chunks_exact(BLOCK).zip(words[k / 4..].chunks_exact_mut(4)) {
            let squares: f64 = h.iter().map(|h| (f64::from(*h) * SMALLER).powi(2)).sum();
            let share = (squares + BLOCK as f64 * f64::from(eps) * SMALLER.powi(2)) / k as f64;
            scale[3] = (share as f32).to_bits();
        }
    }
}

/// The number of elements of rows of `k` that [`pack_q8`] may round to a neighbour if `x` has the
/// error of an f32 computation: those half way between two quants, and those of a block whose scale
/// is close to a step of its 16 bits that are less far from half way than such a step moves them.
pub fn near_ties(x: &[f32], k: usize) -> usize {
    crate::check::rows("near_ties: x", x.len(), k);
    let near = |x: &[f32]| {
        let largest = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if largest < 1e-30 {
            return 0;
        }
        let bits = (largest * (1.0 / 127.0)).to_bits();
        let d = f64::from(f32::from_bits(bits.wrapping_add(255) & !255));
        let distance = if (8..=248).contains(&(bits & 255)) { CLOSE } else { CLOSE_TO_A_STEP };
        x.iter().filter(|&&x| ((f64::from(x) / d).rem_euclid(1.0) - 0.5).abs() < distance).count()
    };
    x.chunks_exact(BLOCK).map(near).sum()
}

/// Distance from half way, in quants: 127 times the error of an f32 computation.
const CLOSE: f64 = 5e-4;

/// Distance from half way, in quants, in a block whose scale may be a step of 2^-16 larger or
/// smaller.
const CLOSE_TO_A_STEP: f64 = 3e-3;

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

    #[test]
    fn a_row_packed_before_its_norm_comes_back_normed() {
        let (k, eps) = (96, 1e-5);
        let h: Vec<f32> = (0..2 * k).map(|i| ((i * i) as f32 * 0.37).sin() * if i < k { 3.0 } else { 1e-3 }).collect();
        let w: Vec<f32> = (0..k).map(|i| 1.0 + i as f32 / 50.0).collect();
        let (mut words, mut x, mut normed) = (vec![0; 2 * k / 8 * 3], vec![0.0; 2 * k], vec![0.0; 2 * k]);
        norm_pack_q8(&h, Some(&w), k, eps, &mut words);
        unpack_q8(&words, k, &mut x);
        crate::rms_norm(&h, Some(&w), k, f64::from(eps), &mut normed);
        assert!(crate::worst_row(&normed, &x, k).nmse < 1e-4);
        let share = |block: usize| f64::from(f32::from_bits(words[k / 4 + 4 * block + 3]));
        let s = h[..k].iter().map(|h| f64::from(*h).powi(2)).sum::<f64>() / k as f64 + f64::from(eps);
        assert!(((0..3).map(share).sum::<f64>() / SMALLER.powi(2) / s - 1.0).abs() < 1e-6);
    }

    #[test]
    fn elements_half_way_are_near_and_others_are_not() {
        let mut x = [0.25_f32; BLOCK];
        x[0] = 127.0;
        assert_eq!(near_ties(&x, BLOCK), 0);
        x[3] = 20.500_1;
        x[9] = -7.499_9;
        assert_eq!(near_ties(&x, BLOCK), 2);
        assert_eq!(near_ties(&[0.0; BLOCK], BLOCK), 0);
    }
}
