//! Parity cases of `softcap_backward`.

use super::softcap::{Softcap, softcap};
use super::softcap_backward::softcap_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("softcap_backward", case)];

/// Operands far below the cap and far beyond it.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, cap) = (g.small(), g.dim(), g.pick(&[0.5, 30.0]));
    let mut case = Case::new(rows);
    let size = g.pick(&[0.1, 3.0]) * cap;
    let x = case.uniform(g, dim, size);
    let dy = case.tensor(g, dim);
    let y = softcap(&mut case.rec, x, cap);
    let dx = softcap_backward(&mut case.rec, &Softcap { x, cap, y }, dy);
    case.expect(dx);
    case
}
