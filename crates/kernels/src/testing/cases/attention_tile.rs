//! Parity cases of `attention_tile`.

use crate::kernel::random::Gen;
use crate::testing::cases::attention::{Drawn, appended_as};
use crate::testing::cases::attention_step::of_documents;
use crate::testing::parity::Case;
use cpu_ref::KvType;

/// Keys of a cache and of the step; tiles partly filled, because rows or heads do not divide them;
/// one sequence and several, every mask, softcaps, every KV type.
pub fn case(g: &mut Gen) -> Case {
    let dim = g.pick(&[64, 128, 256, 512]);
    let (rows, group) = g.pick(&[(65, 2), (65, 3), (65, 7), (66, 16), (67, 4), (68, 1), (130, 1), (260, 1), (260, 2)]);
    if g.coin() {
        return of_documents(g, rows, dim, group);
    }
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    appended_as(g, Drawn { ty, rows, dim, group: Some(group), ..Drawn::default() })
}
