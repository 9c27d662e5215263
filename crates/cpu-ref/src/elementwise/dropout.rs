//! Sets a random share of the elements to zero.

use super::threefry::threefry2x32;

/// `y[i] = x[i] / (1 - rate)`, or 0 with the probability `rate`. An element is dropped by the first
/// word of Threefry with `key` and the counter (i, `tensor`), so that the same key drops the same
/// elements: the operation is its own derivative. `rate` is below 1.
///
/// Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
/// overfitting", in the form that scales while training.
pub fn dropout(x: &[f32], key: [u32; 2], tensor: u32, rate: f64, y: &mut [f32]) {
    crate::check::len("dropout: y", y.len(), x.len());
    assert!((0.0..1.0).contains(&rate), "dropout: a rate of {rate}");
    for (i, (&x, y)) in (0..).zip(x.iter().zip(y)) {
        let drawn = f64::from(threefry2x32(key, [i, tensor])[0]);
        *y = if drawn < rate * 2f64.powi(32) { 0.0 } else { (f64::from(x) / (1.0 - rate)) as f32 };
    }
}

#[cfg(test)]
mod tests {
    use super::dropout;

    fn dropped(key: [u32; 2], tensor: u32, rate: f64) -> Vec<f32> {
        let mut y = vec![f32::NAN; 10_000];
        dropout(&vec![1.0; 10_000], key, tensor, rate, &mut y);
        y
    }

    #[test]
    fn a_share_is_zero_and_the_mean_stays() {
        let y = dropped([1, 2], 3, 0.25);
        let zeros = y.iter().filter(|y| **y == 0.0).count();
        // Standard deviation 43.
        assert!((2330..2670).contains(&zeros), "{zeros}");
        assert!(y.iter().all(|y| *y == 0.0 || (*y - 4.0 / 3.0).abs() < 1e-6));
    }

    #[test]
    fn key_and_tensor_choose_the_elements() {
        let same = |a: &[f32], b: &[f32]| a.iter().zip(b).filter(|(a, b)| a == b).count();
        let first = dropped([1, 2], 3, 0.5);
        assert_eq!(first, dropped([1, 2], 3, 0.5));
        for other in [dropped([2, 2], 3, 0.5), dropped([1, 3], 3, 0.5), dropped([1, 2], 4, 0.5)] {
            assert!((4700..5300).contains(&same(&first, &other)));
        }
    }

    #[test]
    fn a_rate_of_zero_keeps_everything() {
        assert_eq!(dropped([7, 7], 0, 0.0), vec![1.0; 10_000]);
    }
}
