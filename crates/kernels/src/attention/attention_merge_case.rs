//! Parity cases of `attention_merge`.

use super::attention_case::{Drawn, Packing, appended_as};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::KvType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_merge", case)];

/// The case of the split, read as f32, in 8 bits or in f16; windows of one key, and the largest
/// number of parts.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, dim) = (g.pick(&[1, 2, 5]), g.pick(&[32, 64, 128, 256, 512]));
    let packing = g.pick(&[Packing::None, Packing::Q8, Packing::F16]);
    let (late, window) = (g.coin(), g.pick(&[None, None, Some(1), Some(1500)]));
    appended_as(g, Drawn { ty, window, rows, dim, packing, late, ..Drawn::default() })
}
