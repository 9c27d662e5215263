//! Parity cases of `rms_norm`.

use super::rms_norm::rms_norm;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("rms_norm", case)];

/// Rows with sizes around the workgroup's, with values near epsilon, near overflow of the square,
/// and all equal; also per head.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim(), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let x = case.squared(g, heads * dim).heads(heads);
    let y = rms_norm(&mut case.rec, x, w, eps);
    case.expect(y);
    case
}
