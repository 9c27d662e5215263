//! Parity cases of `gaussian_top_k`.

use super::gaussian_top_k::gaussian_top_k;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gaussian_top_k", case)];

/// Rows with sizes around the workgroup's, each with an element far above its cut-off: a difference
/// of nearly equal numbers has no error bound.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, offset) = (g.small(), g.dim(), g.pick(&[0.0, -3.0, 1.5]));
    let mut case = Case::new(rows);
    let mut values: Vec<f32> = g.units(rows * dim, 2.0).into_iter().map(|x| offset + x).collect();
    values.iter_mut().step_by(dim as usize).for_each(|x| *x = offset + 9.0);
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let multiplier = g.pick(if dim < 31 { &[0.0, -0.5, 0.8] } else { &[0.0, -0.5, 0.84, 1.6448] });
    let y = gaussian_top_k(&mut case.rec, x, multiplier);
    case.expect(y);
    case
}
