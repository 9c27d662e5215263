//! The largest elements with their indices.

use std::cmp::Ordering;

/// The `k` largest elements of `x` as (index, value): value descending, then index ascending.
///
/// NaN is left out. The result has fewer than `k` elements if `x` has fewer.
pub fn top_k(x: &[f32], k: usize) -> Vec<(u32, f32)> {
    let mut best: Vec<(u32, f32)> = (0..).zip(x.iter().copied()).filter(|(_, value)| !value.is_nan()).collect();
    if k == 0 {
        return Vec::new();
    }
    if k < best.len() {
        best.select_nth_unstable_by(k - 1, order);
        best.truncate(k);
    }
    best.sort_unstable_by(order);
    best
}

/// Value descending, then index ascending. A total order if there is no NaN.
fn order(a: &(u32, f32), b: &(u32, f32)) -> Ordering {
    b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::top_k;

    #[test]
    fn ties_come_by_index() {
        assert_eq!(top_k(&[1.0, 4.0, 2.0, 4.0, 4.0], 2), [(1, 4.0), (3, 4.0)]);
        assert_eq!(top_k(&[1.0, 4.0, 2.0, 4.0, 4.0], 4), [(1, 4.0), (3, 4.0), (4, 4.0), (2, 2.0)]);
        assert_eq!(top_k(&[-0.0, 0.0], 1), [(0, 0.0)]);
    }

    #[test]
    fn k_of_zero_all_and_more_than_all() {
        assert_eq!(top_k(&[1.0, 2.0], 0), []);
        assert_eq!(top_k(&[1.0, 2.0], 2), [(1, 2.0), (0, 1.0)]);
        assert_eq!(top_k(&[1.0, 2.0], 9), [(1, 2.0), (0, 1.0)]);
        assert_eq!(top_k(&[], 3), []);
    }

    #[test]
    fn nan_is_left_out() {
        assert_eq!(top_k(&[f32::NAN, f32::NEG_INFINITY, 1.0], 3), [(2, 1.0), (1, f32::NEG_INFINITY)]);
    }

    #[test]
    fn a_permutation_of_a_prime_length() {
        let x: Vec<f32> = (0..10_007u64).map(|i| (i * 5003 % 10_007) as f32).collect();
        let top = top_k(&x, 100);
        assert!(
            top.iter()
                .enumerate()
                .all(|(rank, &(id, value))| value == (10_006 - rank) as f32 && x[id as usize] == value)
        );
    }
}
