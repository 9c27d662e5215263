//! Parity cases of `relu`.

use super::relu::relu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("relu", case)];

/// Elements of both signs, with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let y = relu(&mut case.rec, x);
    case.expect(y);
    case
}
