//! Parity cases of `sample_scan`.

use crate::kernel::random::Gen;
use crate::testing::parity::Case;

/// The case of the draw, of which this kernel is a part.
pub fn case(g: &mut Gen) -> Case {
    crate::testing::cases::sample::case(g)
}
