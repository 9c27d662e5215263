//! Rotary position embedding.

use crate::check;

/// The parameters of the angles, besides the position.
#[derive(Clone, Copy, Debug)]
pub struct RopeSpec<'a> {
    /// Rotated dimensions per head, even; also the denominator of the exponent.
    pub dim: usize,
    /// Base of the geometric series of frequencies (theta).
    pub base: f64,
    /// Multiplies every frequency: 1 for none, 1 / factor for linear position scaling (arXiv
    /// 2306.15595).
    pub scale: f64,
    /// Divisors of the `dim / 2` frequencies (GGUF `rope_freqs.weight`); 1e30 leaves a pair
    /// unrotated.
    pub factors: Option<&'a [f64]>,
    /// Multiplies cosines and sines: 1 for none (YaRN's attention factor, arXiv 2309.00071).
    pub magnitude: f64,
}

/// The angle of position 1 for each pair: `scale * base^(-2 i / dim) / factors[i]`, `[dim / 2]`.
pub fn rope_frequencies(spec: &RopeSpec) -> Vec<f64> {
    assert!(spec.dim.is_multiple_of(2), "rope_frequencies: dim {} is odd", spec.dim);
    if let Some(factors) = spec.factors {
        check::len("rope_frequencies: factors", factors.len(), spec.dim / 2);
    }
    let frequency = |i: usize| {
        let factor = spec.factors.map_or(1.0, |factors| factors[i]);
        spec.scale * spec.base.powf(-2.0 * i as f64 / spec.dim as f64) / factor
    };
    (0..spec.dim / 2).map(frequency).collect()
}

/// Cosines and sines of every position: `angle[t, i] = positions[t] frequencies[i]`, with the
/// frequencies of [`rope_frequencies`].
///
/// `rows [T, dim / 2, 2]` receives magnitude (cos, sin), computed in f64 and rounded once.
/// Source: Su et al. 2021, arXiv 2104.09864, section 3.2.2.
pub fn rope_rows(spec: &RopeSpec, positions: &[u32], rows: &mut [f32]) {
    check::len("rope_rows: rows", rows.len(), positions.len() * spec.dim);
    let frequencies = rope_frequencies(spec);
    let pairs = positions.iter().flat_map(|&position| frequencies.iter().map(move |f| position as f64 * f));
    for (angle, row) in pairs.zip(rows.chunks_exact_mut(2)) {
        row[0] = (spec.magnitude * angle.cos()) as f32;
        row[1] = (spec.magnitude * angle.sin()) as f32;
    }
}

/// Rotates the pairs `(x[i], x[i + dim / 2])` of every head by its token's angles; elements from
/// `dim` on are copied.
///
/// `x` and `y [T, heads, head_dim]`; `rows [T, dim / 2, 2]` from [`rope_rows`], whose width gives
/// dim <= head_dim: `y[i] = x[i] cos - x[i + dim / 2] sin`,
/// `y[i + dim / 2] = x[i] sin + x[i + dim / 2] cos`. The pairing follows GPT-NeoX (Black et al.
/// 2022, arXiv 2204.06745), as in the Qwen and Gemma checkpoints.
pub fn rope(x: &[f32], rows: &[f32], heads: usize, head_dim: usize, y: &mut [f32]) {
    let t = check::rows("rope: x", x.len(), heads * head_dim);
    check::len("rope: y", y.len(), x.len());
    if t == 0 {
        return;
    }
    let dim = rows.len() / t;
    check::len("rope: rows", rows.len(), t * dim);
    assert!(dim.is_multiple_of(2) && dim <= head_dim, "rope: {dim} rotated dimensions of heads of {head_dim}");
    y.copy_from_slice(x);
    if dim == 0 {
        return;
    }
    for (token, row) in y.chunks_exact_mut(heads * head_dim).zip(rows.chunks_exact(dim)) {
        for head in token.chunks_exact_mut(head_dim) {
            let (low, high) = head[..dim].split_at_mut(dim / 2);
            for ((low, high), row) in low.iter_mut().zip(high).zip(row.chunks_exact(2)) {
                let (a, b, cos, sin) = (*low as f64, *high as f64, row[0] as f64, row[1] as f64);
                *low = (a * cos - b * sin) as f32;
                *high = (a * sin + b * cos) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    const PLAIN: RopeSpec = RopeSpec { dim: 4, base: 10_000.0, scale: 1.0, factors: None, magnitude: 1.0 };

    fn rows(spec: RopeSpec, positions: &[u32]) -> Vec<f32> {
        let mut rows = vec![f32::NAN; positions.len() * spec.dim];
        rope_rows(&spec, positions, &mut rows);
        rows
    }

    fn close(got: &[f32], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((*g as f64 - w).abs() < 1e-6, "{got:?}, expected {want:?}");
        }
    }

    #[test]
    fn the_second_pair_turns_a_hundredth_as_fast() {
        let want = [1.0, 0.0, 1.0, 0.0, 0.540302306, 0.841470985, 0.999950000, 0.009999833];
        close(&rows(PLAIN, &[0, 1]), &want);
    }

    #[test]
    fn large_positions_keep_their_angle() {
        // cos and sin of 100000 radians, where an f32 angle has an error of up to 4e-3.
        let spec = RopeSpec { dim: 2, ..PLAIN };
        close(&rows(spec, &[100_000]), &[-0.9993608074382124, 0.03574879797201651]);
    }

    #[test]
    fn linear_scaling_divides_the_position() {
        assert_eq!(rows(RopeSpec { scale: 0.125, ..PLAIN }, &[8, 80]), rows(PLAIN, &[1, 10]));
    }

    #[test]
    fn factors_slow_or_stop_a_pair() {
        let factors = [2.0, 1e30];
        close(&rows(RopeSpec { factors: Some(&factors), ..PLAIN }, &[2]), &[0.540302306, 0.841470985, 1.0, 0.0]);
    }

    #[test]
    fn the_magnitude_lengthens_every_pair() {
        let want =
            [1.25, 0.0, 1.25, 0.0, 1.25 * 0.540302306, 1.25 * 0.841470985, 1.25 * 0.999950000, 1.25 * 0.009999833];
        close(&rows(RopeSpec { magnitude: 1.25, ..PLAIN }, &[0, 1]), &want);
    }

    #[test]
    fn a_quarter_turn_swaps_the_halves() {
        // Both pairs are rotated by a right angle: (a, b) becomes (-b, a). The elements of a pair
        // are two apart.
        let spec = RopeSpec { base: 1.0, scale: PI / 2.0, ..PLAIN };
        let mut y = [f32::NAN; 4];
        rope(&[1.0, 2.0, 3.0, 4.0], &rows(spec, &[1]), 1, 4, &mut y);
        close(&y, &[-3.0, -4.0, 1.0, 2.0]);
    }

    #[test]
    fn dimensions_past_the_rotated_ones_are_copied() {
        let spec = RopeSpec { dim: 2, base: 1.0, scale: PI, ..PLAIN };
        let mut y = [f32::NAN; 10];
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        rope(&x, &rows(spec, &[1]), 2, 5, &mut y);
        close(&y, &[-1.0, -2.0, 3.0, 4.0, 5.0, -6.0, -7.0, 8.0, 9.0, 10.0]);
    }

    #[test]
    fn every_token_has_its_own_row() {
        let spec = RopeSpec { dim: 2, base: 1.0, scale: PI / 2.0, ..PLAIN };
        let mut y = [f32::NAN; 6];
        rope(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], &rows(spec, &[0, 1, 2]), 1, 2, &mut y);
        close(&y, &[1.0, 0.0, 0.0, 1.0, -1.0, 0.0]);
    }

    #[test]
    fn inner_products_depend_on_the_distance_only() {
        let (q, k) = ([0.3, -1.2, 0.7, 2.0], [1.1, 0.4, -0.6, 0.9]);
        let score = |m: u32, n: u32| {
            let (mut a, mut b) = ([f32::NAN; 4], [f32::NAN; 4]);
            rope(&q, &rows(PLAIN, &[m]), 1, 4, &mut a);
            rope(&k, &rows(PLAIN, &[n]), 1, 4, &mut b);
            a.iter().zip(&b).map(|(&a, &b)| a as f64 * b as f64).sum::<f64>()
        };
        assert!((score(7, 3) - score(5004, 5000)).abs() < 1e-6);
        assert!((score(7, 3) - score(3, 7)).abs() > 1e-2);
    }

    #[test]
    fn no_tokens_and_no_rotation() {
        rope(&[], &[], 2, 4, &mut []);
        let mut y = [f32::NAN; 2];
        rope(&[1.0, 2.0], &[], 1, 2, &mut y);
        assert_eq!(y, [1.0, 2.0]);
    }

    #[test]
    #[should_panic(expected = "rope: 4 rotated dimensions of heads of 2")]
    fn rows_wider_than_a_head_panic() {
        rope(&[1.0, 2.0], &[1.0, 0.0, 1.0, 0.0], 1, 2, &mut [0.0; 2]);
    }
}
