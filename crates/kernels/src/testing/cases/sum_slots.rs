//! Parity cases of `sum_slots`.

use crate::kernel::random::Gen;
use crate::ops::backward::sum_slots;
use crate::testing::parity::Case;

/// One to sixty-four slots, rows with sizes around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, k) = (g.small(), g.dim(), g.pick(&[1, 2, 4, 8, 64]));
    let mut case = Case::new(rows);
    let x = case.positive(g, k * dim).heads(k);
    let y = sum_slots(&mut case.rec, x);
    case.expect(y);
    case
}
