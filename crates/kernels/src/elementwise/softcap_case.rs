//! Parity cases of `softcap`.

use super::softcap::softcap;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("softcap", case)];

/// From inputs far below the cap, where the result is the input, to saturation.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let cap = g.pick(&[30.0, 50.0, 8.0, 0.5]);
    let y = softcap(&mut case.rec, x, cap);
    case.expect(y);
    case
}
