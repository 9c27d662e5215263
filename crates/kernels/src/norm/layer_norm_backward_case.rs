//! Parity cases of `layer_norm_backward`.

use super::layer_norm::LayerNorm;
use super::layer_norm_backward::layer_norm_backward;
use super::layer_norm_case::rows;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("layer_norm_backward", case)];

/// The rows of the norm's own cases, except rows of few elements. The derivative is the part of dy
/// that is neither constant nor parallel to the normed row: of few elements, or of a dy with a
/// single element, it may be what rounding leaves of 1 - 1.
pub fn case(g: &mut Gen) -> Case {
    let (count, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim().max(31), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::new(count);
    let w = g.coin().then(|| case.vector(g, dim));
    let x = rows(&mut case, g, [count, heads, dim]);
    let dy = case.uniform(g, heads * dim, 2.0).heads(heads);
    let dx = layer_norm_backward(&mut case.rec, &LayerNorm { x, w, b: None, eps, y: dy }, dy);
    case.expect(dx);
    case
}
