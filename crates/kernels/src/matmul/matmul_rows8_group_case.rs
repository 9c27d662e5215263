//! Parity cases of `matmul_rows8_group`.

use super::matmul_vec_q8::matmul_q8;
use crate::elementwise::add::add_bias;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_rows8_group", case)];

/// Two and three products of a few rows, with different formats, odd and even numbers of rows, so
/// many rows of few columns that a workgroup takes several groups of four, columns that take the
/// lanes several rounds, rows whose last scale is directly followed by the next row, with and
/// without biases and a norm whose factor the products apply.
pub fn case(g: &mut Gen) -> Case {
    let (ty, rows) = (g.format_with(Format::in_8_bits), g.pick(&[2, 2, 4, 4, 5, 8, 9]));
    let (superblocks, most) = g.pick(&[(1, 257), (4, 3 * 1025), (5, 3 * 1025), (8, 1025), (24, 257)]);
    let cols = 256 * superblocks;
    let mut case = Case::perhaps_full(g, rows);
    let x = case.tensor(g, cols);
    let x = if g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    let packed = pack_q8(&mut case.rec, x);
    for n in 0..g.pick(&[2, 3, 3]) {
        let ty = if n == 0 { ty } else { g.format_with(Format::in_8_bits) };
        let n = g.pick(&[2, 3, 31, 64, most, most]);
        let w = case.weight(g, ty, n, cols);
        let bias = g.coin().then(|| case.vector(g, n));
        let y = matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
