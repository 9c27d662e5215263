//! Sums over the rows of a matrix.

/// `g[c] += sum_r a[r, c] b[r, c]`, with b = 1 where absent: the derivative of a row that is added
/// to every row (by [`add`](crate::add())), or multiplied with every row `b` (by
/// [`mul`](crate::mul())), from the derivative `a` by the result. The sum is rounded before it is
/// added.
///
/// `a` and `b [R, C]`, `g [C]`.
pub fn column_sum(a: &[f32], b: Option<&[f32]>, g: &mut [f32]) {
    crate::check::rows("column_sum: a", a.len(), g.len());
    if let Some(b) = b {
        crate::check::len("column_sum: b", b.len(), a.len());
    }
    let mut sums = vec![0.0f64; g.len()];
    for (i, &a) in a.iter().enumerate() {
        sums[i % g.len()] += f64::from(a) * b.map_or(1.0, |b| f64::from(b[i]));
    }
    g.iter_mut().zip(&sums).for_each(|(g, &sum)| *g += sum as f32);
}

#[cfg(test)]
mod tests {
    use super::column_sum;
    use crate::differences::{holds, numbers};

    #[test]
    fn it_is_the_derivative_of_a_bias_and_of_a_factor() {
        let (rows, dim) = (5, 4);
        let (x, dy, w) = (numbers(rows * dim, 1), numbers(rows * dim, 2), numbers(dim, 3));
        type Forward = fn(&[f32], &[f32], &mut [f32]);
        for (forward, factor) in [(crate::add as Forward, None), (crate::mul as Forward, Some(&x[..]))] {
            let mut g = vec![-1.0; dim];
            column_sum(&dy, factor, &mut g);
            g.iter_mut().for_each(|g| *g += 1.0);
            let result = |w: &[f32]| {
                let mut y = vec![0.0; rows * dim];
                forward(&x, w, &mut y);
                y
            };
            holds(result, &w, &dy, &g);
        }
    }

    #[test]
    fn no_rows_add_nothing() {
        let mut g = [7.0; 3];
        column_sum(&[], None, &mut g);
        assert_eq!(g, [7.0; 3]);
    }
}
