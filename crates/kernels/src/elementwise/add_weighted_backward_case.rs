//! Parity cases of `add_weighted_backward` and `add_weighted_backward_c`.

use super::add_weighted::{AddWeighted, RowWeights};
use super::add_weighted_backward::add_weighted_backward;
use super::add_weighted_backward_c::add_weighted_backward_c;
use crate::graph::tensor::Tensor;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("add_weighted_backward", case), ("add_weighted_backward_c", weights_case)];

/// One to four tensors, weights in the middle of their rows.
fn sum(case: &mut Case, g: &mut Gen, dim: u32) -> AddWeighted {
    let (count, first, after) = (g.pick(&[1, 2, 3, 4]), g.pick(&[0, 1, 12]), g.pick(&[0, 3]));
    let x: Vec<Tensor> = (0..count).map(|_| case.positive(g, dim)).collect();
    let c = case.tensor(g, first + count + after);
    let shift = g.pick(&[0.0, 1.0]);
    AddWeighted { base: x[0], y: x[0], x, weights: RowWeights { c, first, shift } }
}

/// The derivative by each tensor.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let sum = sum(&mut case, g, dim);
    let dy = case.tensor(g, dim);
    for j in 0..sum.x.len() {
        let dx = add_weighted_backward(&mut case.rec, &sum, j, dy);
        case.expect(dx);
    }
    case
}

/// The derivative by the weights. Values of one sign, so that no sum is small by cancellation.
pub fn weights_case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let sum = sum(&mut case, g, dim);
    let dy = case.positive(g, dim);
    let dc = add_weighted_backward_c(&mut case.rec, &sum, dy);
    case.expect(dc);
    case
}
