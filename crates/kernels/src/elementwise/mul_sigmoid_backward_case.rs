//! Parity cases of `mul_sigmoid_backward`.

use super::mul_sigmoid_backward::mul_sigmoid_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("mul_sigmoid_backward", case)];

/// Gates of both signs, rows with sizes around the workgroup's. Values of one sign, so that no sum
/// is small by cancellation.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, amplitude) = (g.small(), g.dim(), g.pick(&[1.0, 10.0, 60.0]));
    let mut case = Case::new(rows);
    let (x, gate) = (case.positive(g, dim), case.uniform(g, 1, amplitude));
    let dy = case.positive(g, dim);
    let dgate = mul_sigmoid_backward(&mut case.rec, x, gate, dy);
    case.expect(dgate);
    case
}
