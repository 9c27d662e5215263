//! Parity cases of `matmul_vec_norm`.

use super::matmul_vec_q8::matmul_q8;
use crate::caps::table::USUAL_VEC_COLUMNS as LONG;
use crate::elementwise::add::add;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::{BLOCK, pack_q8};
use crate::norm::pack_q8_case::activations;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_norm", case)];

/// The parts as a model records them, with and without a weight of the norm, and with an earlier
/// norm whose factor the product applies; sums so small that eps counts.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (cols, n) = if g.pick(&[false, false, true]) {
        (LONG + 256 * g.pick(&[0, 1]), BLOCK * 33)
    } else {
        (256 * g.pick(&[1, 2]), BLOCK * g.pick(&[4, 5, 17]))
    };
    let mut case = Case::new(1);
    let (normed, small) = (g.coin(), g.coin());
    let packed = if small && !normed {
        let x = case.uniform(g, cols, 1e-4);
        pack_q8(&mut case.rec, x)
    } else {
        activations(&mut case, g, cols, normed)
    };
    let w = case.weight(g, ty, n, cols);
    let a = if small { case.uniform(g, n, 1e-4) } else { case.tensor(g, n) };
    let y = matmul_q8(&mut case.rec, w, packed);
    let h = if g.coin() { add(&mut case.rec, a, y) } else { add(&mut case.rec, y, a) };
    case.expect(h);
    let u = g.coin().then(|| case.vector(g, n));
    let x = rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5]));
    let packed = pack_q8(&mut case.rec, x);
    case.expect(packed);
    case
}
