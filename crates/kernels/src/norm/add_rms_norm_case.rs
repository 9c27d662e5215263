//! Parity cases of `add_rms_norm`.

use super::rms_norm::rms_norm;
use crate::elementwise::add::add;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("add_rms_norm", case)];

/// The two parts as a model records them. The plan must fuse them and return both results.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let (a, b) = (case.squared(g, dim), case.tensor(g, dim));
    let h = add(&mut case.rec, a, b);
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    case.expect(h);
    case.expect(x);
    case
}
