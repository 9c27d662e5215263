//! Parity cases of `mul`.

use super::mul::{mul, mul_row};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("mul", case)];

/// Gates, factors per channel and single factors with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let a = case.tensor(g, dim);
    let y = if g.coin() {
        let b = case.tensor(g, dim);
        mul(&mut case.rec, a, b)
    } else {
        let cols = g.pick(&[1, dim]);
        let b = case.vector(g, cols);
        mul_row(&mut case.rec, a, b)
    };
    case.expect(y);
    case
}
