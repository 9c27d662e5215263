//! Parity cases of `norm_rope_heads`.

use super::norm_rope_append_case::recorded;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_rope_heads", case)];

/// The parts as models record them, with rotated queries, normed or not.
pub fn case(g: &mut Gen) -> Case {
    recorded(g, true)
}
