//! Parity cases of `norm_pack_matmul_vec_glu`.

use super::matmul_vec_q8::matmul_q8;
use super::norm_pack_matmul_vec_case::normed;
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::{BLOCK, pack_q8};
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_pack_matmul_vec_glu", case)];

/// The parts as a model records them, for both activations, of a row that is normed with and
/// without a weight or not at all, with blocks in whole and half groups of eight.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let cols = if ty.block_size() == 32 { 32 * g.pick(&[1, 4, 8, 11, 24, 32]) } else { 256 * g.pick(&[1, 2, 3, 4]) };
    let n = BLOCK * g.pick(&[1, 2, 3, 7]);
    let mut case = Case::new(1);
    let x = normed(&mut case, g, cols).0;
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
