//! Parity cases of `norm_rope`.

use super::rms_norm::rms_norm;
use super::rope::rope;
use crate::graph::record::RopeTable;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_rope", case)];

/// The two parts as a model records them: heads shorter and longer than a workgroup, whole and
/// partial rotations.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, head_dim) =
        (g.pick(&[1, 2, 3, 26, 26]), g.pick(&[1, 2, 3, 5]), g.pick(&[16, 64, 80, 128, 256, 512]));
    let dim = if g.coin() { head_dim } else { head_dim / 2 };
    let mut case = Case::new(rows);
    case.place(g, 131_072);
    let table = case.rec.rope_rows(&RopeTable::new(dim, 1e4));
    let w = g.coin().then(|| case.vector(g, head_dim));
    let x = case.squared(g, heads * head_dim).heads(heads);
    let x = rms_norm(&mut case.rec, x, w, 1e-6);
    let y = rope(&mut case.rec, x, table);
    case.expect(y);
    case
}
