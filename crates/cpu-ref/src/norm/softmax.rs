//! Softmax of rows.

/// `y[t, d] = exp(x[t, d] - max_t) / sum_d exp(x[t, d] - max_t)`, in f64.
///
/// `x` and `y [T, D]` with D = `dim`. Each row holds at least one finite value. Minus infinity
/// marks a masked element.
pub fn softmax(x: &[f32], dim: usize, y: &mut [f32]) {
    crate::check::rows("softmax: x", x.len(), dim);
    crate::check::len("softmax: y", y.len(), x.len());
    for (x, y) in x.chunks_exact(dim).zip(y.chunks_exact_mut(dim)) {
        let max = x.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(x as f64));
        let total: f64 = x.iter().map(|&x| (x as f64 - max).exp()).sum();
        for (&x, y) in x.iter().zip(y) {
            *y = ((x as f64 - max).exp() / total) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::softmax;

    fn row<const LEN: usize>(x: [f32; LEN], dim: usize) -> [f32; LEN] {
        let mut y = [f32::NAN; LEN];
        softmax(&x, dim, &mut y);
        y
    }

    #[test]
    fn logarithms_give_their_ratios() {
        let y = row([0.0, 2f32.ln(), 5f32.ln(), 7.0], 4);
        let total = 1.0 + 2.0 + 5.0 + 7f32.exp();
        for (y, ratio) in y.iter().zip([1.0, 2.0, 5.0]) {
            assert!((y - ratio / total).abs() < 1e-8, "{y}");
        }
    }

    #[test]
    fn rows_are_independent_and_shifts_cancel() {
        assert_eq!(row([0.0, 1.0, 1000.0, 1001.0], 2)[..2], row([0.0, 1.0, 1000.0, 1001.0], 2)[2..]);
    }

    #[test]
    fn inputs_whose_exponentials_overflow() {
        assert_eq!(row([3e38, 3e38, -3e38], 3), [0.5, 0.5, 0.0]);
        assert_eq!(row([-1e30, -1e30], 2), [0.5, 0.5]);
    }

    #[test]
    fn equal_and_single_elements() {
        assert_eq!(row([7.5; 5], 5), [0.2; 5]);
        assert_eq!(row([-3.0, 1e9], 1), [1.0, 1.0]);
    }

    #[test]
    fn minus_infinity_is_masked() {
        assert_eq!(row([f32::NEG_INFINITY, 2.0, 2.0], 3), [0.0, 0.5, 0.5]);
    }

    #[test]
    fn many_small_terms_are_not_lost() {
        // One element at 0 and 2^20 at -20: their sum is 2^20 exp(-20) = 2.16e-3 of the total's 1.
        let mut x = vec![-20.0; (1 << 20) + 1];
        x[0] = 0.0;
        let mut y = vec![f32::NAN; x.len()];
        softmax(&x, x.len(), &mut y);
        assert!((y[0] - 0.997_843_3).abs() < 1e-6, "{}", y[0]);
    }
}
