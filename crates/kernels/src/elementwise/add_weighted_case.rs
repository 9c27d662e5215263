//! Parity cases of `add_weighted`.

use super::add_weighted::{RowWeights, add_weighted};
use crate::graph::operation::Parameter;
use crate::graph::tensor::Tensor;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("add_weighted", case)];

/// One to four tensors, weights in the middle of their rows, with and without a shift.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, count) = (g.small(), g.dim(), g.pick(&[1, 2, 3, 4]));
    let (first, after) = (g.pick(&[0, 1, 12]), g.pick(&[0, 3]));
    let mut case = Case::new(rows);
    let base = case.tensor(g, dim);
    let x: Vec<Tensor> = (0..count).map(|_| case.tensor(g, dim)).collect();
    let c = case.tensor(g, first + count + after);
    let shift = g.pick(&[0.0, 1.0]);
    let y = add_weighted(&mut case.rec, base, &x, RowWeights { c, first, shift });
    case.expect(y);
    case
}

impl Parameter for RowWeights {
    fn wrong(&self, _: &'static str) -> Vec<(&'static str, Self)> {
        let Self { first, shift, .. } = *self;
        let shifts = shift.wrong("shift").into_iter().map(|(name, shift)| (name, Self { shift, ..*self }));
        shifts.chain(first.wrong("first").into_iter().map(|(name, first)| (name, Self { first, ..*self }))).collect()
    }
}
