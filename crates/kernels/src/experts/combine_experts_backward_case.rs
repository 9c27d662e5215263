//! Parity cases of `combine_experts_backward`.

use super::combine_experts::CombineExperts;
use super::combine_experts_backward::combine_experts_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("combine_experts_backward", case)];

/// One to sixty-four choices, rows with sizes around the workgroup's. Values of one sign, so that
/// no sum is small by cancellation.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, k) = (g.small(), g.dim(), g.pick(&[1, 2, 4, 8, 64]));
    let mut case = Case::new(rows);
    let (x, weights) = (case.positive(g, k * dim).heads(k), case.tensor(g, k));
    let dy = case.positive(g, dim);
    let results = combine_experts_backward(&mut case.rec, &CombineExperts { x, weights, y: dy }, dy);
    results.into_iter().for_each(|t| case.expect(t));
    case
}
