//! Parity cases of `pack_f16`.

use super::pack_f16::packed;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("pack_f16", case)];

/// Magnitudes below this count as zeros.
pub(crate) const LEAST: f32 = 7.9e-31;

/// Rows of ordinary, tiny and huge values, of zeros, of the smallest values with a scale and the
/// largest without one, set by a value in any column.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 4 * g.dim());
    let mut case = Case::new(rows);
    let scaled = g.pick(&[true, true, false]);
    let x = if !scaled {
        case.uniform(g, dim, 1e3)
    } else if g.coin() {
        case.squared(g, dim)
    } else {
        let (size, largest) = (g.pick(&[LEAST, LEAST.next_down()]), g.below(dim));
        g.block();
        let values = (0..rows * dim).map(|n| if n % dim == largest { size } else { size * g.unit() }).collect();
        case.given(Shape::new(Lead::Step, rows, dim), values)
    };
    let (scales, halves) = packed(&mut case.rec, x, scaled);
    case.expect(scales);
    case.expect(halves);
    case
}
