//! Parity cases of `rms_norm_backward`.

use super::rms_norm::RmsNorm;
use super::rms_norm_backward::rms_norm_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("rms_norm_backward", case)];

/// The rows of the norm's own cases, except rows of few elements. The derivative is the part of dy
/// that is not parallel to x: of few elements it may be what rounding leaves of 1 - 1.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim().max(31), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let x = case.squared(g, heads * dim).heads(heads);
    let dy = case.tensor(g, heads * dim).heads(heads);
    let dx = rms_norm_backward(&mut case.rec, &RmsNorm { x, w, eps, y: dy }, dy);
    case.expect(dx);
    case
}
