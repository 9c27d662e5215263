//! Parity cases of `join_columns`.

use super::join_columns::join_columns;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("join_columns", case)];

/// One part and several, of one column and more.
pub fn case(g: &mut Gen) -> Case {
    let (rows, parts) = (g.small(), g.pick(&[1, 2, 5]));
    let mut case = Case::new(rows);
    let parts = (0..parts).map(|_| {
        let dim = g.dim().min(300);
        case.tensor(g, dim)
    });
    let parts = parts.collect();
    let y = join_columns(&mut case.rec, parts);
    case.expect(y);
    case
}
