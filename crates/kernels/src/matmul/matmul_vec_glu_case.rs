//! Parity cases of `matmul_vec_glu`.

use super::matmul_vec_q8::matmul_q8;
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::{BLOCK, pack_q8};
use crate::norm::pack_q8_case::activations;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_glu", case)];

/// The parts as a model records them, for both activations, with and without a norm whose factor
/// the products apply.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (cols, n) = (256 * g.pick(&[1, 2, 5, 9]), BLOCK * g.pick(&[1, 2, 3, 7]));
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    let [gate, up] = [0, 1].map(|_| {
        let w = case.weight(g, ty, n, cols);
        matmul_q8(&mut case.rec, w, packed)
    });
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect(packed);
    case
}
