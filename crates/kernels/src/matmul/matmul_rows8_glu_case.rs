//! Parity cases of `matmul_rows8_glu`.

use super::matmul_vec_q8::matmul_q8;
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::{BLOCK, pack_q8};
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_rows8_glu", case)];

/// The parts as a model records them, for both activations, with and without a norm whose factor
/// the products apply. Gates are small, as in `matmul_vec_q8_experts_glu`.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(Format::in_8_bits), g.pick(&[2, 2, 4, 4, 5, 8, 9]));
    let (cols, n) = (256 * g.pick(&[1, 3, 4, 5, 6, 17]), BLOCK * g.pick(&[1, 2, 3, 7]));
    let mut case = Case::perhaps_full(g, rows);
    let x = case.uniform(g, cols, 0.125);
    let norm = g.coin().then(|| case.given_vector(g.units(cols, 0.125)));
    let x = norm.map_or(x, |norm| rms_norm(&mut case.rec, x, Some(norm), 1e-6));
    let packed = pack_q8(&mut case.rec, x);
    let [gate, up] = [0, 1].map(|_| {
        let w = case.weight(g, ty, n, cols);
        matmul_q8(&mut case.rec, w, packed)
    });
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect(packed);
    case
}
