//! Parity cases of `attention_decode_256`.

use super::attention_decode_case::{Drawn, recorded};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode_256", case)];

/// A row after others in the states, as models record it: after no key, some of each quarter of the
/// keys taken at a time, all, one more, and as many as the kernel takes; normed or not, in whole
/// states and in rings, with and without a key and value of its own; and the contents of the states
/// afterwards.
pub fn case(g: &mut Gen) -> Case {
    let (heads, dim, group) = (g.pick(&[1, 2, 3]), g.pick(&[256, 512]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[0, 1, 2, 7, 8, 20, 31, 32, 33, 130, 400, 511, 1024]);
    let window = g.coin().then(|| g.pick(&[1, 2, 32, 33, 300, 512]));
    recorded(g, Drawn { heads, dim, group, position, window, capped: false, whole: true })
}
