//! Parity cases of `swiglu`.

use crate::kernel::random::Gen;
use crate::ops::swiglu::swiglu;
use crate::testing::parity::Case;

/// Gates from strongly negative to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let (gate, up) = (case.tensor(g, dim), case.tensor(g, dim));
    let y = swiglu(&mut case.rec, gate, up);
    case.expect(y);
    case
}
