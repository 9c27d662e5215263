//! The number of steps that changed something.

/// `count + 1` if `squares`, the sum of the squares of all gradients, is finite. Otherwise
/// `count`, because [`adamw`](crate::adamw()) changes nothing then.
pub fn count_step(squares: f32, count: f32) -> f32 {
    if squares.is_finite() { count + 1.0 } else { count }
}

#[cfg(test)]
mod tests {
    use super::count_step;

    #[test]
    fn steps_without_a_norm_are_not_counted() {
        assert_eq!(
            [1.0, f32::INFINITY, f32::NAN, f32::NEG_INFINITY].map(|squares| count_step(squares, 4.0)),
            [5.0, 4.0, 4.0, 4.0]
        );
    }
}
