//! Parity cases of `layer_norm`.

use super::layer_norm::layer_norm;
use crate::graph::tensor::{Lead, Shape, Tensor};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("layer_norm", case)];

/// Rows around a mean that is up to 3000 times their deviation, with deviations near epsilon and
/// near overflow of the square. Of equal elements, the deviation would be what rounding leaves.
pub(crate) fn rows(case: &mut Case, g: &mut Gen, [rows, heads, dim]: [u32; 3]) -> Tensor {
    let (mean, deviation) = (g.pick(&[0.0, -3.0, 3000.0]), g.pick(&[1e-3, 1.0, 1e18]));
    let mut values = g.units(rows * heads * dim, 1.0);
    // The first element of each row differs from the others.
    values.iter_mut().step_by(dim as usize).for_each(|x| *x = 1.5);
    let values = values.into_iter().map(|x| deviation * (mean + x)).collect();
    case.given(Shape::new(Lead::Step, rows, heads * dim), values).heads(heads)
}

/// Rows with sizes around the workgroup's, with and without weight and bias, also per head.
pub fn case(g: &mut Gen) -> Case {
    let (count, heads, dim, eps) = (g.small(), g.pick(&[1, 1, 3]), g.dim(), g.pick(&[1e-6_f32, 1e-5]));
    let mut case = Case::new(count);
    let w = g.coin().then(|| case.vector(g, dim));
    // A row of one element is its bias alone.
    let b = (dim == 1 || g.coin()).then(|| case.vector(g, dim));
    let x = rows(&mut case, g, [count, heads, dim]);
    let y = layer_norm(&mut case.rec, x, w, b, eps);
    case.expect(y);
    case
}
