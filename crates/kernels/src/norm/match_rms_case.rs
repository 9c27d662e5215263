//! Parity cases of `match_rms`.

use super::match_rms::match_rms;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("match_rms", case)];

/// Rows with sizes around the workgroup's, of similar and of different magnitudes, above and below
/// the smallest mean; also per head.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, dim) = (g.small(), g.pick(&[1, 1, 3]), g.dim());
    let mut case = Case::new(rows);
    let x = case.tensor(g, heads * dim).heads(heads);
    let like = case.tensor(g, heads * dim).heads(heads);
    let least = g.pick(&[1e-5, 1e-2, 10.0]);
    let y = match_rms(&mut case.rec, x, like, least);
    case.expect(y);
    case
}
