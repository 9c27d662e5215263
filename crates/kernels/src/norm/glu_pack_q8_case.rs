//! Parity cases of `glu_pack_q8`.

use super::pack_q8::{BLOCK, pack_q8};
use crate::elementwise::geglu::geglu_columns;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("glu_pack_q8", case)];

/// The parts as a model records them, for both activations; with a wider `up`, only its selected
/// columns.
pub fn case(g: &mut Gen) -> Case {
    let (rows, k) = (g.small(), BLOCK * g.pick(&[1, 2, 31, 32, 33]));
    let mut case = Case::new(rows);
    let (before, behind) = (g.pick(&[0, 0, 4, 12]), g.pick(&[0, 8]));
    let (gate, up) = (case.tensor(g, k), case.tensor(g, before + k + behind));
    let y = if before + behind > 0 || g.coin() {
        geglu_columns(&mut case.rec, gate, up, before)
    } else {
        swiglu(&mut case.rec, gate, up)
    };
    let packed = pack_q8(&mut case.rec, y);
    case.expect(packed);
    case
}
