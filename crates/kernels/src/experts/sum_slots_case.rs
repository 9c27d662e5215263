//! Parity cases of `sum_slots`.

use super::sum_slots::sum_slots;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("sum_slots", case)];

/// One to sixty-four slots, rows with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, k) = (g.small(), g.dim(), g.pick(&[1, 2, 4, 8, 64]));
    let mut case = Case::new(rows);
    let x = case.positive(g, k * dim).heads(k);
    let y = sum_slots(&mut case.rec, x);
    case.expect(y);
    case
}
