//! Parity cases of `rope_backward`.

use super::rope_backward::rope_backward;
use crate::graph::record::RopeTable;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("rope_backward", case)];

/// Whole and partial rotations, scaled frequencies, several heads.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 2, 5]), g.pick(&[4, 64, 80, 128]));
    let mut case = Case::new(rows);
    let rotated = g.pick(&[dim, dim / 2]);
    let table =
        RopeTable { scale: g.pick(&[1.0, 0.25]), magnitude: g.pick(&[1.0, 1.5]), ..RopeTable::new(rotated, 1e4) };
    let table = case.rec.rope_rows(&table);
    let dy = case.tensor(g, heads * dim).heads(heads);
    let dx = rope_backward(&mut case.rec, dy, table);
    case.expect(dx);
    case
}
