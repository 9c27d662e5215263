//! Parity cases of `norm_matmul_vec_glu`.

use super::matmul::matmul;
use super::norm_matmul_vec_group_case::{columns, row};
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_matmul_vec_glu", case)];

/// Both products of a row that is normed or not, of one format or of two, with odd and even numbers
/// of results, and either activation.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format();
    let cols = columns(g, ty);
    let mut case = Case::new(1);
    let x = row(&mut case, g, cols).0;
    let rows = g.pick(&[5, 8, 31, 97]);
    let other = if g.coin() { ty } else { g.format_with(|f| cols.is_multiple_of(f.ty.block_size() as u32)) };
    let [gate, up] = [ty, other].map(|ty| {
        let w = case.weight(g, ty, rows, cols);
        matmul(&mut case.rec, w, x)
    });
    let y = if g.coin() { swiglu(&mut case.rec, gate, up) } else { geglu(&mut case.rec, gate, up) };
    case.expect(y);
    case
}
