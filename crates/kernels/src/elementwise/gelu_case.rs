//! Parity cases of `gelu`.

use super::gelu::gelu;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gelu", case)];

/// From strongly negative to strongly positive. The first is positive: for strongly negative
/// values, only the absolute error does not depend on how a driver rounds the argument of exp.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut values = g.values((rows * dim) as usize);
    values[0] = values[0].abs();
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let y = gelu(&mut case.rec, x);
    case.expect(y);
    case
}
