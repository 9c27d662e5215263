//! Parity cases of `norm_matmul_vec_glu_teams`.

use crate::kernel::random::Gen;
use crate::lower::matmul::norm_matmul_vec_glu_teams::RESULTS;
use crate::ops::{geglu, matmul, swiglu};
use crate::testing::cases::norm_matmul_vec_group::row;
use crate::testing::cases::norm_matmul_vec_teams::{columns, format};
use crate::testing::parity::Case;

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
