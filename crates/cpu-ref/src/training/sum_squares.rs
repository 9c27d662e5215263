//! Sum of the squares of many numbers.

use crate::dot::dot;

/// `sum_i x[i]^2` over all elements of all `x`, in f64.
pub fn sum_squares(x: &[&[f32]]) -> f64 {
    x.iter().map(|x| dot(x, x)).sum()
}

#[cfg(test)]
mod tests {
    use super::sum_squares;

    #[test]
    fn several_slices_have_one_sum() {
        assert_eq!(sum_squares(&[&[1.0, 2.0], &[], &[-3.0]]), 14.0);
    }
}
