//! Parity cases of `attention_split`.

use crate::kernel::random::Gen;
use crate::lower::attention::attention_split::LONG;
use crate::testing::cases::attention::{Drawn, Packing, appended_as};
use crate::testing::parity::Case;
use cpu_ref::KvType;

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
