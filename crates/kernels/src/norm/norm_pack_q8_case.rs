//! Parity cases of `norm_pack_q8`.

use super::pack_q8::pack_q8;
use super::rms_norm::rms_norm;
use crate::elementwise::add::add;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_pack_q8", case)];

/// The parts as a model records them, with and without the sum; rows of few blocks and of more than
/// the threads, with any magnitude.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 32 * g.pick(&[1, 3, 64, 127, 128, 129]));
    let mut case = Case::new(rows);
    let w = g.coin().then(|| case.vector(g, dim));
    let a = case.squared(g, dim);
    let h = if g.coin() {
        let b = case.tensor(g, dim);
        let h = add(&mut case.rec, a, b);
        case.expect(h);
        h
    } else {
        a
    };
    let x = rms_norm(&mut case.rec, h, w, g.pick(&[1e-6_f32, 1e-5]));
    let packed = pack_q8(&mut case.rec, x);
    case.expect(packed);
    case
}
