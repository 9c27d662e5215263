//! Parity cases of `norm_matmul_vec_glu_teams`.

use super::matmul::matmul;
use super::norm_matmul_vec_glu_teams::RESULTS;
use super::norm_matmul_vec_group_case::row;
use super::norm_matmul_vec_teams_case::{columns, format};
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_matmul_vec_glu_teams", case)];

/// Both products of a row that is normed or not, of one format or of two, with results around a
/// workgroup's and around a team's, and either activation.
pub fn case(g: &mut Gen) -> Case {
    let ty = format(g);
    let cols = columns(g, ty);
    let mut case = Case::new(1);
    case.workgroups = Some(1);
    let x = row(&mut case, g, cols).0;
    let rows = RESULTS + g.pick(&[0, 1, 15, 33]);
    let other = if cols.is_multiple_of(256) { format(g) } else { ty };
    let [gate, up] = [ty, other].map(|ty| {
        let w = case.weight(g, ty, rows, cols);
        matmul(&mut case.rec, w, x)
    });
    let y = if g.coin() { swiglu(&mut case.rec, gate, up) } else { geglu(&mut case.rec, gate, up) };
    case.expect(y);
    case
}
