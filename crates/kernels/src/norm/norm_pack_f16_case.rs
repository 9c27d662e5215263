//! Parity cases of `norm_pack_f16`.

use super::pack_f16::pack_f16;
use super::rms_norm::rms_norm;
use crate::elementwise::add::add;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_pack_f16", case)];

/// The parts as a model records them, with and without the sum and the weight; rows of few quads
/// and of more than the threads, with any magnitude.
pub fn case(g: &mut Gen) -> Case {
    // Rows of one to two quads per thread, of two, and slightly longer ones each have code of their
    // own.
    let (rows, usual) = (g.small(), g.dim());
    let dim = 4 * g.pick(&[usual, usual, usual, usual, usual, 640, 1024, 1281]);
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let a = if g.coin() { case.squared(g, dim) } else { case.alone(g, dim) };
    let h = if g.coin() {
        let b = case.tensor(g, dim);
        let h = add(&mut case.rec, a, b);
        case.expect(h);
        h
    } else {
        a
    };
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    let (scales, halves) = pack_f16(&mut case.rec, x);
    case.expect(scales);
    case.expect(halves);
    case
}
