//! Weighted sum of tensors with separate weights for each row.

/// The weights of a sum: for row t, the elements of row t of `c [T, columns]` from column `first`
/// on, each plus `shift`.
#[derive(Copy, Clone, Debug)]
pub struct RowWeights<'a> {
    pub c: &'a [f32],
    pub columns: usize,
    pub first: usize,
    pub shift: f64,
}

/// `y[t, d] = base[t, d] + sum_j (c[t, first + j] + shift) x_j[t, d]`, in f64, rounded once.
///
/// `base`, every tensor of `x`, and `y [T, D]` with D = `dim`. Source: AltUp, Baykal et al. 2023,
/// arXiv 2301.13310, as in Hugging Face's `Gemma3nTextAltUp`.
pub fn add_weighted(base: &[f32], x: &[&[f32]], weights: RowWeights<'_>, dim: usize, y: &mut [f32]) {
    let RowWeights { c, columns, first, shift } = weights;
    crate::check::rows("add_weighted: base", base.len(), dim);
    crate::check::len("add_weighted: c", c.len(), base.len() / dim * columns);
    crate::check::len("add_weighted: y", y.len(), base.len());
    x.iter().for_each(|x| crate::check::len("add_weighted: x", x.len(), base.len()));
    assert!(first + x.len() <= columns, "add_weighted: {} columns from {first} of {columns}", x.len());
    for (i, y) in y.iter_mut().enumerate() {
        let c = &c[i / dim * columns + first..];
        let terms = x.iter().zip(c).map(|(x, &c)| (c as f64 + shift) * x[i] as f64);
        *y = (base[i] as f64 + terms.sum::<f64>()) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::{RowWeights, add_weighted};

    #[test]
    fn every_row_has_weights_of_its_own() {
        let mut y = [f32::NAN; 4];
        let (base, a, b) = ([100.0, 200.0, 300.0, 400.0], [1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]);
        let weights = RowWeights { c: &[9.0, 2.0, -1.0, 9.0, 0.5, 3.0], columns: 3, first: 1, shift: 0.0 };
        add_weighted(&base, &[&a, &b], weights, 2, &mut y);
        assert_eq!(y, [92.0, 184.0, 391.5, 522.0]);
    }

    #[test]
    fn the_shift_is_on_every_weight() {
        let mut y = [f32::NAN; 2];
        let weights = RowWeights { c: &[-1.0, 0.0], columns: 2, first: 0, shift: 1.0 };
        add_weighted(&[0.0, 10.0], &[&[2.0, 4.0], &[1.0, 1.0]], weights, 2, &mut y);
        assert_eq!(y, [1.0, 11.0]);
    }

    #[test]
    #[should_panic(expected = "add_weighted: 2 columns from 1 of 2")]
    fn weights_past_the_row_belong_to_the_next() {
        let weights = RowWeights { c: &[1.0, 1.0], columns: 2, first: 1, shift: 0.0 };
        add_weighted(&[0.0], &[&[1.0], &[1.0]], weights, 1, &mut [0.0]);
    }
}
