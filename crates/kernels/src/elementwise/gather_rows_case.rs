//! Parity cases of `gather_rows`.

use super::gather_rows::gather_rows;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gather_rows", case)];

/// Some rows, in any order, with repeats.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    case.input.out_rows = (0..rows).map(|_| g.below(rows)).collect();
    let x = case.tensor(g, dim);
    let y = gather_rows(&mut case.rec, x);
    case.expect(y);
    case
}
