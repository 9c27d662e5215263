//! Parity cases of `matmul_vec_q8`.

use super::matmul_vec_q8::matmul_q8;
use crate::caps::table::USUAL_VEC_COLUMNS as LONG;
use crate::elementwise::add::{add, add_bias};
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::pack_q8_case::activations;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_q8", case), ("matmul_vec_add", sum_case)];

/// Every format with units, rows shorter and longer than the lanes read at a time, and so long that
/// more lanes read them, row counts around the workgroup's, blocks of zeros, and activations whose
/// product applies the norm's factor. A single result of such activations could cancel to zero,
/// where a relative error means nothing.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let long = g.pick(&[false, false, true]);
    let blocks = if ty.block_size() == 32 { g.pick(&[1, 2, 4, 16, 33, 70]) } else { g.pick(&[1, 2, 3, 5, 9]) };
    let cols = ty.block_size() as u32 * blocks + if long { LONG } else { 0 };
    let (n, normed) = (if long { g.pick(&[31, 32, 65]) } else { g.dim() }, g.coin());
    let n = if normed { n.max(31) } else { n };
    let mut case = Case::new(1);
    let w = case.weight(g, ty, n, cols);
    let packed = activations(&mut case, g, cols, normed);
    let bias = g.coin().then(|| case.vector(g, n));
    let y = matmul_q8(&mut case.rec, w, packed);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}

/// A sum with a product. Two other products read its norm, so that they pack it. The product is on
/// either side of the sum.
pub fn sum_case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (cols, n) = (256 * g.pick(&[1, 2, 5]), 256 * g.pick(&[1, 2]));
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    let w = case.weight(g, ty, n, cols);
    let a = case.tensor(g, n);
    let y = matmul_q8(&mut case.rec, w, packed);
    let h = if g.coin() { add(&mut case.rec, a, y) } else { add(&mut case.rec, y, a) };
    case.expect(h);
    let x = rms_norm(&mut case.rec, h, None, 1e-6);
    let packed = pack_q8(&mut case.rec, x);
    for _ in 0..2 {
        let w = case.weight(g, ty, 64, n);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    }
    case
}
