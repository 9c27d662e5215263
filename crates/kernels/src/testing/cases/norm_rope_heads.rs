//! Parity cases of `norm_rope_heads`.

use crate::kernel::random::Gen;
use crate::testing::cases::norm_rope_append::recorded;
use crate::testing::parity::Case;

/// The parts as models record them, with rotated queries, normed or not.
pub fn case(g: &mut Gen) -> Case {
    recorded(g, true)
}
