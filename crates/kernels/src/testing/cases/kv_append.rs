//! Parity cases of `kv_append`.

use crate::kernel::random::Gen;
use crate::testing::parity::Case;

/// What was appended comes back through attention over one key, whose weight is one, or two, whose weights tell the keys.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[cpu_ref::KvType::F32, cpu_ref::KvType::F16, cpu_ref::KvType::Q8_0]);
    let window = g.pick(&[1, 2, 2]);
    crate::testing::cases::attention::appended(g, ty, Some(window))
}
