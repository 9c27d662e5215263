//! Parity cases of `attention_split`.

use super::attention_case::{Drawn, Packing, appended_as};
use super::attention_split::LONG;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_split", case), ("attention_merge_parts", case)];

/// Few rows over keys in one part and in the largest number of parts, as the planner splits them,
/// in f32 or in f16.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, dim) = (g.pick(&[1, 1, 2, 5, 64]), g.pick(&[16, 64, 128, 256, 512]));
    // Two long heads are taken together here; `attention_split_512` takes four.
    let group = (dim > LONG).then(|| g.pick(&[1, 2]));
    let packing = g.pick(&[Packing::None, Packing::F16]);
    appended_as(g, Drawn { ty, rows, dim, group, packing, ..Drawn::default() })
}
