//! Parity cases of `match_rms_backward`.

use super::match_rms::MatchRms;
use super::match_rms_backward::match_rms_backward;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("match_rms_backward", case)];

/// Rows of similar and of different magnitudes, above and below the smallest mean, and a row of
/// zeros that gives the size; also per head.
/// The derivative of a row of one element is what rounding leaves of 1 - 1.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim().max(4));
    let mut case = Case::new(rows);
    let size = g.pick(&[1e-3, 1.0, 100.0]);
    let x = case.uniform(g, heads * dim, size).heads(heads);
    let mut values = g.units(rows * heads * dim, 2.0);
    if g.coin() {
        values[..dim as usize].fill(0.0);
    }
    let like = case.given(Shape::new(Lead::Step, rows, heads * dim), values).heads(heads);
    let dy = case.tensor(g, heads * dim).heads(heads);
    let least = g.pick(&[1e-5, 1e-2, 10.0]);
    let results = match_rms_backward(&mut case.rec, &MatchRms { x, like, least, y: dy }, dy);
    results.into_iter().for_each(|t| case.expect(t));
    case
}
