//! Parity cases of `attention_split_128`.

use super::attention_case::{Drawn, appended_as};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_split_128", case)];

/// A row over keys in one part and in the largest number of parts, as the planner splits them.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let group = Some(g.pick(&[2, 4, 6, 8]));
    appended_as(g, Drawn { ty, dim: 128, group, ..Drawn::default() })
}
