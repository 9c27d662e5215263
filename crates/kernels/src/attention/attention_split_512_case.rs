//! Parity cases of `attention_split_512`.

use super::attention_case::{Drawn, appended_as};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_split_512", case)];

/// A row over keys in one part and in the largest number of parts, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let (ty, group) = (g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]), Some(g.pick(&[4, 8])));
    appended_as(g, Drawn { ty, dim: 512, group, ..Drawn::default() })
}
