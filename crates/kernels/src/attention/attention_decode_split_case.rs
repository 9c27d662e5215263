//! Parity cases of `attention_decode_split`.

use super::attention_decode_case::Drawn;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode_split", case)];

/// Contexts longer than one workgroup per head serves: whole parts, and one key more and less;
/// windows that end within parts or before their start; whole states and rings.
pub fn case(g: &mut Gen) -> Case {
    let position = g.pick(&[512, 541, 542, 543, 575, 900, 2046]);
    let window = g.coin().then(|| g.pick(&[513, 600, 1024]));
    let group = g.pick(&[2, 4, 6, 8]);
    let heads = g.pick(&[1, 2]);
    let (capped, whole) = (g.coin(), g.coin());
    let mut case = crate::attention::attention_decode_case::recorded(
        g,
        Drawn { heads, dim: 128, group, position, window, capped, whole },
    );
    // Parts of one tile of keys and of several tiles.
    case.split_workgroups = g.pick(&[None, Some(8)]);
    case
}
