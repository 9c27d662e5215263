//! Parity cases of `gaussian_top_k_backward`.

use super::gaussian_top_k::{GaussianTopK, gaussian_top_k};
use super::gaussian_top_k_backward::gaussian_top_k_backward;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gaussian_top_k_backward", case)];

/// The rows of the operation's own cases, and rows of equal elements, of which none is kept. A row
/// of one element is always equal.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, offset) = (g.small(), g.dim(), g.pick(&[0.0, -3.0, 1.5]));
    let mut case = Case::new(rows);
    let mut values: Vec<f32> = g.units(rows * dim, 2.0).into_iter().map(|x| offset + x).collect();
    values.iter_mut().step_by(dim as usize).for_each(|x| *x = offset + 9.0);
    let equal = g.coin();
    if equal {
        values[..dim as usize].fill(0.5);
    }
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let dy = case.positive(g, dim);
    let multiplier = g.pick(if dim < 31 { &[0.0, 0.3, 0.8] } else { &[0.0, -0.5, 0.84, 1.6448] });
    let y = gaussian_top_k(&mut case.rec, x, multiplier);
    let dx = gaussian_top_k_backward(&mut case.rec, &GaussianTopK { x, multiplier, y }, dy);
    case.expect(dx);
    case
}
