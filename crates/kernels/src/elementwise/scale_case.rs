//! Parity cases of `scale`.

use super::scale::scale;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("scale", case)];

/// Factors of either sign, zero, and factors that are not a power of two.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let s = g.pick(&[0.0, 1.0, -0.37, 53.066]);
    let y = scale(&mut case.rec, x, s);
    case.expect(y);
    case
}
