//! The inner product that matmul and attention share.

/// Number of independent partial sums. They let the compiler overlap several additions.
const LANES: usize = 8;

/// `sum_i a[i] * b[i]` in f64. The product of two f32 is exact in f64, so only the additions round.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0f64; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(&a, &b)| a as f64 * b as f64).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] as f64 * b[lane] as f64;
        }
    }
    sums.iter().sum::<f64>() + tail
}

#[cfg(test)]
mod tests {
    use super::dot;

    #[test]
    fn lengths_around_the_chunk_width() {
        for len in [0, 1, 7, 8, 9, 16, 31] {
            let a: Vec<f32> = (1..=len).map(|i| i as f32).collect();
            let ones = vec![1.0; len];
            assert_eq!(dot(&a, &ones), (len * (len + 1) / 2) as f64, "length {len}");
        }
    }

    #[test]
    fn small_terms_survive_large_ones_that_cancel() {
        assert_eq!(dot(&[1e8, 1.0, -1e8], &[1.0, 1.0, 1.0]), 1.0);
    }
}
