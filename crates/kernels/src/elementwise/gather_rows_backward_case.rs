//! Parity cases of `gather_rows_backward`.

use super::gather_rows::gather_rows;
use super::gather_rows_backward::gather_rows_backward;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gather_rows_backward", case)];

/// Some rows in rising order, the first and the last among them or not, some of them twice.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.dim());
    let mut case = Case::new(rows);
    let mut chosen: Vec<u32> = (0..rows).map(|_| (g.bits() % u64::from(rows)) as u32).collect();
    chosen.sort_unstable();
    chosen.truncate(g.pick(&[rows as usize, rows as usize / 2 + 1]));
    case.input.out_rows = chosen;
    let x = case.tensor(g, dim);
    let y = gather_rows(&mut case.rec, x);
    let dx = gather_rows_backward(&mut case.rec, y);
    case.expect(dx);
    case
}
