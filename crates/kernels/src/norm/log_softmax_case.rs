//! Parity cases of `log_softmax`.

use super::log_softmax::log_softmax;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("log_softmax", case)];

/// Rows with sizes around the workgroup's, flat, peaked and all equal; also per head.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, heads * dim).heads(heads);
    let y = log_softmax(&mut case.rec, x);
    case.expect(y);
    case
}
