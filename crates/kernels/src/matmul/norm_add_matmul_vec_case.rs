//! Parity cases of `norm_add_matmul_vec`.

use super::matmul_vec_q8::matmul_q8;
use crate::graph::tensor::Tensor;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::norm_add_case::sum;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_add_matmul_vec", case)];

/// A row that products of this kernel make: a packed sum of `cols` columns, normed or not, which is
/// also compared as f32.
pub(crate) fn row(case: &mut Case, g: &mut Gen, cols: u32) -> Tensor {
    let h = sum(case, g, cols, 1);
    case.expect(h);
    let normed = g.coin();
    let u = g.coin().then(|| case.vector(g, cols));
    let x = if normed { crate::norm::rms_norm::rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])) } else { h };
    crate::norm::pack_q8::pack_q8(&mut case.rec, x)
}

/// One to three products, with different formats, odd and even numbers of rows around the
/// workgroup's, also exactly one workgroup's; rows from one block of weights to the longest, in
/// whole and partial subgroups of elements.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let of_32 = ty.block_size() == 32 && g.coin();
    let cols = if of_32 { 32 * g.pick(&[1, 4, 33, 79]) } else { 256 * g.pick(&[1, 5, 9, 10]) };
    let mut case = Case::new(1);
    let packed = row(&mut case, g, cols);
    let count = g.pick(&[1, 2, 3]);
    for n in 0..count {
        let ty =
            if n == 0 { ty } else { g.format_with(|f| f.in_8_bits() && cols.is_multiple_of(f.ty.block_size() as u32)) };
        let rows = if count == 1 { g.pick(&[16, 97]) } else { g.pick(&[31, 33, 64, 97]) };
        let w = case.weight(g, ty, rows, cols);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    }
    case
}
