//! Attention with operands in f16 and the softmax of FlashAttention, as tensor cores compute it.

use super::attention::{AttentionSpec, attend};
use half::f16;
use std::ops::Range;

/// How keys are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashTiles {
    /// The position of the first row of `k` and `v`.
    pub first: usize,
    /// Keys of a tile. Tiles begin at the positions that are multiples of it.
    pub keys: usize,
    /// The reference of the weights is raised to the largest score of a tile that exceeds it by
    /// more than this.
    pub raise: f64,
}

/// Rounds values to f16, in place, as the products read keys and values.
pub fn round_f16(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32());
}

/// [`attention`](super::attention()) with the operands of both products in f16: the scaled queries,
/// no larger than the largest f16; `k` and `v`, which [`round_f16`] rounded; and the weights
/// exp(score - reference). The sum that divides the result has the weights before they are rounded.
///
/// Source: Dao et al. 2022, arXiv 2205.14135, algorithm 1. The reference that rises seldom is from
/// FlashAttention-4.
pub fn attention_flash(
    spec: &AttentionSpec,
    tiles: FlashTiles,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    visible: Range<usize>,
    y: &mut [f32],
) {
    let largest = f16::MAX.to_f32();
    let mut q: Vec<f32> = q.iter().map(|q| (q * spec.scale as f32).clamp(-largest, largest)).collect();
    round_f16(&mut q);
    let start = tiles.first + visible.start;
    attend(&AttentionSpec { scale: 1.0, ..*spec }, &q, k, v, visible, y, |scores| weigh(scores, start, tiles));
}

/// Replaces the scores of the keys from position `start` on by their weights in f16, and returns
/// the sum of the weights before they are rounded. Both are relative to the last reference.
fn weigh(scores: &mut [f64], start: usize, tiles: FlashTiles) -> f64 {
    let (mut reference, mut total, mut from) = (f64::NEG_INFINITY, 0.0, 0);
    while from < scores.len() {
        let to = scores.len().min(((start + from) / tiles.keys + 1) * tiles.keys - start);
        let (before, tile) = scores[..to].split_at_mut(from);
        let most = tile.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most > reference + tiles.raise {
            let shrink = (reference - most).exp();
            before.iter_mut().chain([&mut total]).for_each(|sum| *sum *= shrink);
            reference = most;
        }
        for score in tile {
            let weight = (*score - reference).exp();
            total += weight;
            *score = f64::from(f16::from_f64(weight));
        }
        from = to;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILES: FlashTiles = FlashTiles { first: 0, keys: 4, raise: 10.0 };

    /// The weights of scores that begin at `start`, and their sum.
    fn weights(scores: &[f64], start: usize) -> (Vec<f64>, f64) {
        let mut weights = scores.to_vec();
        let total = weigh(&mut weights, start, TILES);
        (weights, total)
    }

    #[test]
    fn values_of_f16_give_what_attention_gives() {
        let spec = AttentionSpec { heads: 2, kv_heads: 1, head_dim: 2, scale: 0.5, softcap: None };
        // Scores of 0, so that every weight is 1.
        let (k, v) = ([0.0; 10], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let (mut y, mut expected) = ([f32::NAN; 4], [f32::NAN; 4]);
        attention_flash(&spec, TILES, &[1.0, -2.0, 3.0, 4.0], &k, &v, 1..5, &mut y);
        super::super::attention(&spec, &[1.0, -2.0, 3.0, 4.0], &k, &v, 1..5, &mut expected);
        assert_eq!(y, expected);
        attention_flash(&spec, TILES, &[1.0; 4], &k, &v, 2..2, &mut y);
        assert_eq!(y, [0.0; 4]);
    }

    #[test]
    fn queries_are_scaled_before_they_are_rounded() {
        let spec = AttentionSpec { heads: 1, kv_heads: 1, head_dim: 1, scale: 0.1, softcap: None };
        let scaled = f16::from_f32(3.0 * 0.1).to_f64();
        let (k, v) = ([2.0, 0.0], [1.0, 0.0]);
        let mut y = [f32::NAN];
        attention_flash(&spec, TILES, &[3.0], &k, &v, 0..2, &mut y);
        let [a, b] = [0.0, -2.0 * scaled].map(f64::exp);
        assert_eq!(y, [(f64::from(f16::from_f64(a)) / (a + b)) as f32]);
        // A score that no f16 holds.
        attention_flash(&AttentionSpec { scale: 1e6, ..spec }, TILES, &[3.0], &k, &v, 0..2, &mut y);
        assert_eq!(y, [1.0]);
    }

    #[test]
    fn the_reference_rises_where_a_tile_exceeds_it_by_more_than_the_limit() {
        // Tiles of four positions from 2 on: two keys, four, and one.
        let (weights_of, total) = weights(&[0.0, 1.0, 11.0, 5.0, 0.0, 0.0, 22.0], 2);
        let half = |x: f64| f64::from(f16::from_f64(x));
        let shrink = (-21.0_f64).exp();
        let expected = [(-1.0_f64).exp(), 1.0, 10.0_f64.exp(), 4.0_f64.exp(), (-1.0_f64).exp(), (-1.0_f64).exp()];
        for (weight, expected) in weights_of.iter().zip(expected) {
            assert!((weight / (half(expected) * shrink) - 1.0).abs() < 1e-12, "{weights_of:?}");
        }
        assert_eq!(weights_of[6], 1.0);
        assert!((total - 1.0 - expected.iter().sum::<f64>() * shrink).abs() < 1e-12);
    }

    #[test]
    fn the_sum_has_the_weights_before_they_are_rounded() {
        let (weights, total) = weights(&[0.0, -0.3], 0);
        assert_eq!(weights, [1.0, f64::from(f16::from_f64((-0.3_f64).exp()))]);
        assert_eq!(total, 1.0 + (-0.3_f64).exp());
        assert_ne!(total, weights.iter().sum::<f64>());
    }
}
