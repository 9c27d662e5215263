//! Parity cases of `geglu`.

use super::geglu::geglu_columns;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("geglu", case)];

/// Gates from strongly negative to strongly positive, with all of `up` or some columns. The first
/// is positive, as in [`crate::ops::gelu()`].
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut values = g.values((rows * dim) as usize);
    values[0] = values[0].abs();
    let gate = case.given(Shape::new(Lead::Step, rows, dim), values);
    let (before, after) = g.pick(&[(0, 0), (0, 3), (7, 0), (64, 65)]);
    let up = case.tensor(g, before + dim + after);
    let y = geglu_columns(&mut case.rec, gate, up, before);
    case.expect(y);
    case
}
