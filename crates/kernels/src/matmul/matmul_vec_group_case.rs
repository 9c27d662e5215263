//! Parity cases of `matmul_vec_group`.

use crate::elementwise::add::add_bias;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8_case::activations;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_group", case)];

/// Two and three products of a row, with different formats, odd and even numbers of rows (never
/// one, whose result could cancel to zero), with and without biases and a norm whose factor the
/// products apply.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let cols = 256 * g.pick(&[1, 2, 5, 9]);
    let mut case = Case::new(1);
    let normed = g.coin();
    let packed = activations(&mut case, g, cols, normed);
    for n in 0..g.pick(&[2, 3]) {
        let ty = if n == 0 { ty } else { g.format_with(Format::in_8_bits) };
        let rows = if normed { g.pick(&[31, 64, 97]) } else { g.pick(&[2, 3, 31, 64, 97]) };
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = crate::matmul::matmul_vec_q8::matmul_q8(&mut case.rec, w, packed);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
