//! Parity cases of `relu_backward`.

use super::relu_backward::relu_backward;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("relu_backward", case)];

/// Elements of both signs, and zeros, whose derivative is 0.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut values = g.units(rows * dim, 2.0);
    values.iter_mut().skip(1).step_by(3).for_each(|x| *x = 0.0);
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let dy = case.tensor(g, dim);
    let dx = relu_backward(&mut case.rec, x, dy);
    case.expect(dx);
    case
}
