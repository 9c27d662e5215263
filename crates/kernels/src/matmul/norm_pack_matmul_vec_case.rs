//! Parity cases of `norm_pack_matmul_vec`.

use super::matmul_vec_q8::matmul_q8;
use crate::elementwise::add::add_bias;
use crate::graph::tensor::Tensor;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_pack_matmul_vec", case)];

/// A row that is normed, with and without a weight, or not; and which of both.
pub(crate) fn normed(case: &mut Case, g: &mut Gen, cols: u32) -> (Tensor, bool) {
    if g.pick(&[false, false, true]) {
        return (case.tensor(g, cols), false);
    }
    let h = case.squared(g, cols);
    let u = g.coin().then(|| case.vector(g, cols));
    (rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])), true)
}

/// Two and three products of a row that is normed or not, one of a row that is not, with different
/// formats, odd and even numbers of rows around the workgroup's, with and without biases.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let cols = 256 * g.pick(&[1, 2, 5, 6]);
    let mut case = Case::new(1);
    let (x, normed) = normed(&mut case, g, cols);
    let packed = pack_q8(&mut case.rec, x);
    for n in 0..if normed { g.pick(&[2, 3]) } else { g.pick(&[1, 2, 3]) } {
        let ty = if n == 0 { ty } else { g.format_with(Format::in_8_bits) };
        let rows = g.pick(&[31, 32, 33, 64, 97]);
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
