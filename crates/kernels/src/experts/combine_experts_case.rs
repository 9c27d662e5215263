//! Parity cases of `combine_experts`.

use super::combine_experts::combine_experts;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("combine_experts", case)];

/// One to sixty-four choices, rows with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, k) = (g.small(), g.dim(), g.pick(&[1, 2, 4, 8, 64]));
    let mut case = Case::new(rows);
    let (x, weights) = (case.tensor(g, k * dim).heads(k), case.tensor(g, k));
    let y = combine_experts(&mut case.rec, x, weights);
    case.expect(y);
    case
}
