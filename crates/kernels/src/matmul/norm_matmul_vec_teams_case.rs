//! Parity cases of `norm_matmul_vec_teams`.

use super::matmul::matmul;
use super::matmul_vec::EIGHT;
use super::matmul_vec_case::LONG;
use super::norm_matmul_vec_group_case::row;
use super::norm_matmul_vec_teams::WEIGHT_ROWS;
use crate::elementwise::add::add_bias;
use crate::kernel::format::FORMATS;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_matmul_vec_teams", case)];

/// A format that kernels of teams read.
pub(crate) fn format(g: &mut Gen) -> GgmlType {
    let formats: Vec<_> = FORMATS.iter().filter(|format| format.teams().is_some()).map(|format| format.ty).collect();
    g.pick(&formats)
}

/// Rows of at most one slab of columns, and of two slabs, the last of which is full or not.
pub(crate) fn columns(g: &mut Gen, ty: GgmlType) -> u32 {
    g.cols(ty).next_multiple_of(EIGHT) + g.pick(&[0, 0, LONG, 2 * LONG])
}

/// One to three products of a row that is normed or not, of one format or of two, with rows around
/// a workgroup's and around a team's, with and without biases.
pub fn case(g: &mut Gen) -> Case {
    let ty = format(g);
    let cols = columns(g, ty);
    let mut case = Case::new(1);
    case.workgroups = Some(1);
    let (x, normed) = row(&mut case, g, cols);
    for n in 0..if normed { g.pick(&[1, 2, 3]) } else { g.pick(&[2, 3]) } {
        let ty = if n == 0 || !cols.is_multiple_of(256) { ty } else { format(g) };
        let rows = if n == 0 { WEIGHT_ROWS + g.pick(&[0, 1, 31, 65]) } else { g.pick(&[5, 32, 33]) };
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = matmul(&mut case.rec, w, x);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}
