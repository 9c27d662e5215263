//! Parity cases of `gelu_backward`.

use super::gelu_backward::gelu_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gelu_backward", case)];

/// Operands from strongly negative to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, amplitude) = (g.small(), g.dim(), g.pick(&[1.0, 4.0, 1000.0]));
    let mut case = Case::new(rows);
    let (x, dy) = (case.uniform(g, dim, amplitude), case.tensor(g, dim));
    let dx = gelu_backward(&mut case.rec, x, dy);
    case.expect(dx);
    case
}
