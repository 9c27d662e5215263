//! Parity cases of `swiglu_backward`.

use super::swiglu_backward::swiglu_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("swiglu_backward", case)];

/// Gates from strongly negative to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let (gate, up, dy) = (case.tensor(g, dim), case.tensor(g, dim), case.tensor(g, dim));
    let results = swiglu_backward(&mut case.rec, gate, up, dy);
    results.into_iter().for_each(|t| case.expect(t));
    case
}
