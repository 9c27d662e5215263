//! Parity cases of `rms_norm_weight_backward`.

use super::rms_norm_weight_backward::rms_norm_weight_backward;
use crate::elementwise::scale::scale;
use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::RmsNorm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("rms_norm_weight_backward", case)];

/// The rows of the norm's own cases, of any magnitude, also per head, with more rows in the plan
/// than in the step, added to sums that hold something.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim(), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::with_states(rows, &[StateKind::Words(dim)], 1, 1);
    let state = case.rec.state(0);
    case.words(g, state, dim);
    let x = case.squared(g, heads * dim);
    let dy = case.uniform(g, heads * dim, 2.0);
    // Values that a kernel made hold anything in the rows behind the step.
    let [x, dy] = [x, dy].map(|t| scale(&mut case.rec, t, 1.0).heads(heads));
    rms_norm_weight_backward(&mut case.rec, &RmsNorm { x, w: None, eps, y: dy }, dy, state);
    case
}
