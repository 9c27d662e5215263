//! Parity cases of `add`.

use super::add::{add, add_bias};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("add", case)];

/// Sums of tensors and of rows that repeat, with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let a = case.tensor(g, dim);
    let y = if g.coin() {
        let b = case.tensor(g, dim);
        add(&mut case.rec, a, b)
    } else {
        let b = case.vector(g, dim);
        add_bias(&mut case.rec, a, b)
    };
    case.expect(y);
    case
}
