//! Parity cases of `softmax_backward`.

use super::softmax::softmax;
use super::softmax_backward::softmax_backward;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("softmax_backward", case)];

/// Rows with sizes around the workgroup's, flat, and with one element that has nearly all the
/// weight; also per head. Rows of one element have no derivative.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, size) = (g.small(), g.pick(&[1, 1, 3]), g.dim().max(2), g.pick(&[1.0, 8.0]));
    let mut case = Case::new(rows);
    let mut values = g.units(rows * heads * dim, size);
    for row in values.chunks_mut(dim as usize) {
        let any = g.id(dim) as usize;
        let (place, above) = (g.any_of(&[any, 0, dim as usize - 1]), g.any_of(&[0.0, 17.0, 30.0]));
        row[place] += above;
    }
    let x = case.given(Shape::new(Lead::Step, rows, heads * dim), values).heads(heads);
    let dy = case.uniform(g, heads * dim, 2.0).heads(heads);
    let y = softmax(&mut case.rec, x);
    let dx = softmax_backward(&mut case.rec, y, dy);
    case.expect(dx);
    case
}
