//! Parity cases of `sample_scan`.

use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("sample_scan", case)];

/// The case of the draw, of which this kernel is a part.
pub fn case(g: &mut Gen) -> Case {
    crate::sampling::sample_case::case(g)
}
