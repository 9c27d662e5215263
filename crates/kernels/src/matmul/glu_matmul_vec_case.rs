//! Parity cases of `glu_matmul_vec`.

use super::matmul_vec_q8::matmul_q8;
use crate::elementwise::geglu::geglu_columns;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("glu_matmul_vec", case)];

/// The parts as a model records them, with some columns of a wider factor; rows of few threads and
/// of the largest number, odd and even numbers of weight rows around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let cols = ty.block_size() as u32
        * if ty.block_size() == 32 { g.pick(&[1, 2, 3, 8, 11, 32]) } else { g.pick(&[1, 2, 3, 4]) };
    let n = g.pick(&[31, 32, 64, 97, 130]);
    let mut case = Case::new(1);
    let (before, behind) = (g.pick(&[0, 4, 12]), g.pick(&[0, 8]));
    let (gate, up) = (case.tensor(g, cols), case.tensor(g, before + cols + behind));
    let w = case.weight(g, ty, n, cols);
    let y = geglu_columns(&mut case.rec, gate, up, before);
    let packed = pack_q8(&mut case.rec, y);
    let y = matmul_q8(&mut case.rec, w, packed);
    case.expect(y);
    case
}
