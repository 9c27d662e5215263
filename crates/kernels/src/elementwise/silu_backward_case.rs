//! Parity cases of `silu_backward`.

use super::silu_backward::silu_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("silu_backward", case)];

/// Operands from strongly negative (as far as normal numbers reach) to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, amplitude) = (g.small(), g.dim(), g.pick(&[1.0, 10.0, 60.0]));
    let mut case = Case::new(rows);
    let (x, dy) = (case.uniform(g, dim, amplitude), case.tensor(g, dim));
    let dx = silu_backward(&mut case.rec, x, dy);
    case.expect(dx);
    case
}
