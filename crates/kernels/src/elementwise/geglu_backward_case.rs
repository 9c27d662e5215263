//! Parity cases of `geglu_backward`.

use super::geglu::Geglu;
use super::geglu_backward::geglu_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("geglu_backward", case)];

/// Gates from strongly negative to strongly positive, with all of `up` or some columns.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let (start, after) = g.pick(&[(0, 0), (0, 3), (7, 0), (64, 65)]);
    let (gate, dy) = (case.tensor(g, dim), case.tensor(g, dim));
    let up = case.tensor(g, start + dim + after);
    let results = geglu_backward(&mut case.rec, &Geglu { gate, up, start, y: dy }, dy);
    results.into_iter().for_each(|t| case.expect(t));
    case
}
