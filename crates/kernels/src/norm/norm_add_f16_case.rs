//! Parity cases of `norm_add_f16`.

use super::norm_add_case::sum;
use super::pack_f16::pack_f16;
use super::rms_norm::rms_norm;
use crate::elementwise::scale::scale;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_add_f16", case)];

/// The parts as a model records them: a sum with one norm, with and without factors, packed to f16
/// as it is or normed; rows around those that threads hold.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 32 * g.pick(&[1, 3, 63, 64, 65, 97, 128, 129, 160]));
    let mut case = Case::new(rows);
    let h = sum(&mut case, g, dim, 1);
    let h = if g.coin() { scale(&mut case.rec, h, g.pick(&[-0.37, 2.0])) } else { h };
    case.expect(h);
    let u = g.coin().then(|| case.vector(g, dim));
    let x = if g.coin() { rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])) } else { h };
    let (scales, halves) = pack_f16(&mut case.rec, x);
    case.expect(scales);
    case.expect(halves);
    case
}
