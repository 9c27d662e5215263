//! Parity cases of `merge_matmul_vec`.

use super::attention_decode_case::{Drawn, recorded_for};
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::matmul::matmul_vec_q8::matmul_q8;
use crate::norm::pack_q8::pack_q8;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("merge_matmul_vec", case), ("attention_decode_window", case)];

/// Attention as models record it, over windows that end in each of the parts, before their
/// positions or not, in whole states and in rings, with and without a key and value of its own, and
/// a product of it: rows of weights around the workgroup's.
pub fn case(g: &mut Gen) -> Case {
    let (heads, group) = (g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[128, 129, 190, 191, 192, 255, 300, 511, 512, 1024]);
    let window = Some(g.pick(&[129, 192, 193, 256, 257, 300, 449, 511, 512]));
    let drawn = Drawn { heads, dim: 256, group, position, window, capped: false, whole: true };
    recorded_for(g, drawn, |case, g, y| {
        let packed = pack_q8(&mut case.rec, y);
        let ty = g.format_with(Format::in_8_bits);
        let n = g.pick(&[31, 32, 33, 64, 97]);
        let w = case.weight(g, ty, n, heads * group * 256);
        let y = matmul_q8(&mut case.rec, w, packed);
        case.expect(y);
    })
}
