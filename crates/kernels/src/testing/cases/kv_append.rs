//! Parity cases of `kv_append`.

use crate::kernel::random::Gen;
use crate::testing::parity::Case;

/// The appended values are read back by attention over one key, whose weight is one, or over two,
/// whose weights distinguish the keys.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[cpu_ref::KvType::F32, cpu_ref::KvType::F16, cpu_ref::KvType::Q8_0]);
    let window = g.pick(&[1, 2, 2]);
    crate::testing::cases::attention::appended(g, ty, Some(window))
}
