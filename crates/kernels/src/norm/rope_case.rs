//! Parity cases of `rope`.

use super::rope::rope;
use crate::graph::record::RopeTable;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("rope", case)];

/// Whole and partial rotations, with and without divisors and magnitude, at positions up to
/// 131,072.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, head_dim) = (g.small(), g.pick(&[1, 2, 5]), g.pick(&[4, 64, 80, 128, 256]));
    let dim = if g.coin() { head_dim } else { head_dim / 2 };
    let factors = g.coin().then(|| (0..dim / 2).map(|i| if i % 3 == 2 { 1e30 } else { 1.0 + f64::from(i) }).collect());
    let mut case = Case::new(rows);
    case.place(g, 131_072);
    let (scale, magnitude) = (g.pick(&[1.0, 0.125]), g.pick(&[1.0, 1.2]));
    let table = RopeTable { scale, factors, magnitude, ..RopeTable::new(dim, g.pick(&[1e4, 1e6])) };
    let rope_rows = case.rec.rope_rows(&table);
    let x = case.tensor(g, heads * head_dim).heads(heads);
    let y = rope(&mut case.rec, x, rope_rows);
    case.expect(y);
    case
}
