//! Parity cases of `norm_add_matmul_vec_glu`.

use super::matmul_vec_q8::matmul_q8;
use super::norm_add_matmul_vec_case::row;
use crate::elementwise::geglu::geglu;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::{BLOCK, pack_q8};
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_add_matmul_vec_glu", case)];

/// The parts as a model records them; blocks of results around the workgroup's, rows from one block
/// of weights to the longest.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (cols, n) = (256 * g.pick(&[1, 2, 5, 9, 10]), BLOCK * g.pick(&[1, 2, 3, 6]));
    let mut case = Case::new(1);
    let packed = row(&mut case, g, cols);
    let [gate, up] = [0, 1].map(|_| case.weight(g, ty, n, cols));
    let (gate, up) = (matmul_q8(&mut case.rec, gate, packed), matmul_q8(&mut case.rec, up, packed));
    let y = geglu(&mut case.rec, gate, up);
    let packed = pack_q8(&mut case.rec, y);
    case.expect(packed);
    case
}
