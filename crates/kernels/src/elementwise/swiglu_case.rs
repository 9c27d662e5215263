//! Parity cases of `swiglu`.

use super::swiglu::swiglu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("swiglu", case)];

/// Gates from strongly negative to strongly positive.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let (gate, up) = (case.tensor(g, dim), case.tensor(g, dim));
    let y = swiglu(&mut case.rec, gate, up);
    case.expect(y);
    case
}
