//! Parity cases of `gather_slots`.

use super::gather_slots::gather_slots;
use super::pack_f16::pack_f16;
use crate::experts::group_experts_case::choices;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("gather_slots", case)];

/// A row of x for each slot, for all slots of a row of the step, or for some of them; slots in any
/// order; rows of less, as many and more eights than a workgroup has threads; rows of zeros.
pub fn case(g: &mut Gen) -> Case {
    let (rows, heads, per) = (g.small(), g.pick(&[1, 2, 5]), g.pick(&[1, 3, 8]));
    let k = 32 * g.pick(&[1, 3, 16, 40]);
    let mut case = Case::perhaps_full(g, rows);
    let x = case.uniform(g, heads * k, 1e6);
    let (x_scales, packed) = pack_f16(&mut case.rec, x);
    let all = rows * heads * per;
    let order = choices(g, 1, all, all);
    let slots = case.given(Shape::new(Lead::Step, rows, heads * per), order);
    let (scales, halves) = gather_slots(&mut case.rec, packed, x_scales, heads, slots);
    case.expect(scales);
    case.expect(halves);
    case
}
