//! Parity cases of `log_softmax_backward`.

use super::log_softmax::log_softmax;
use super::log_softmax_backward::log_softmax_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("log_softmax_backward", case)];

/// Rows with sizes around the workgroup's, flat and peaked; also per head. Rows of one element have
/// no derivative.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, size) = (g.small(), g.pick(&[1, 1, 3]), g.dim().max(2), g.pick(&[1.0, 8.0, 20.0]));
    let mut case = Case::new(rows);
    let x = case.uniform(g, heads * dim, size).heads(heads);
    let dy = case.uniform(g, heads * dim, 2.0).heads(heads);
    let y = log_softmax(&mut case.rec, x);
    let dx = log_softmax_backward(&mut case.rec, y, dy);
    case.expect(dx);
    case
}
