//! Central differences of oracles, against which their derivatives are checked.

/// The largest relative error (L2) of a derivative against central differences of its oracle.
const BOUND: f64 = 1e-4;

/// `len` numbers between -1 and 1 that repeat nowhere.
pub fn numbers(len: usize, seed: u32) -> Vec<f32> {
    (0..len).map(|i| ((i as f64 * 0.7391 + f64::from(seed) * 2.113).sin() * 1.7).sin() as f32).collect()
}

/// Compares `dx` with the derivative of `sum_i dy[i] f(x)[i]` by every element of `x`, by central
/// differences of fourth order.
pub fn holds(f: impl Fn(&[f32]) -> Vec<f32>, x: &[f32], dy: &[f32], dx: &[f32]) {
    assert_eq!(x.len(), dx.len(), "a derivative for every operand");
    let step = 2e-2_f32;
    let along = |i: usize, by: f32| {
        let mut moved = x.to_vec();
        moved[i] += by;
        // The step as it was rounded.
        let by = f64::from(moved[i]) - f64::from(x[i]);
        let sum: f64 = f(&moved).iter().zip(dy).map(|(&y, &dy)| f64::from(y) * f64::from(dy)).sum();
        (by, sum)
    };
    let (mut wrong, mut all) = (0.0, 0.0);
    for (i, &dx) in dx.iter().enumerate() {
        let difference = |by: f32| {
            let ((up, above), (down, below)) = (along(i, by), along(i, -by));
            (above - below) / (up - down)
        };
        let expected = (4.0 * difference(step) - difference(2.0 * step)) / 3.0;
        wrong += (expected - f64::from(dx)).powi(2);
        all += expected.powi(2);
    }
    let error = (wrong / all).sqrt();
    assert!(error <= BOUND, "differs by {error:e} from finite differences");
}
