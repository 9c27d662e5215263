//! Parity cases of `mul_sigmoid`.

use super::mul_sigmoid::mul_sigmoid;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("mul_sigmoid", case)];

/// Gates from closed (as far as normal numbers reach) to open, rows with sizes around the
/// workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, amplitude) = (g.small(), g.dim(), g.pick(&[1.0, 10.0, 60.0]));
    let mut case = Case::new(rows);
    let (x, gate) = (case.tensor(g, dim), case.uniform(g, 1, amplitude));
    let y = mul_sigmoid(&mut case.rec, x, gate);
    case.expect(y);
    case
}
