//! Parity cases of `softmax`.

use crate::kernel::random::Gen;
use crate::ops::softmax::softmax;
use crate::testing::parity::Case;

/// Rows at the workgroup's edges, flat, peaked and all equal; per head too.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, heads * dim).heads(heads);
    let y = softmax(&mut case.rec, x);
    case.expect(y);
    case
}
