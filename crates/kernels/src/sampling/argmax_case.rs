//! Parity cases of `argmax`.

use super::argmax::argmax;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("argmax", case)];

/// Values whose order is difficult: few distinct values, both zeros, infinities, subnormals, NaN of
/// either sign, only NaN.
pub(crate) fn hard_order(g: &mut Gen, n: usize) -> Vec<f32> {
    const EDGES: [f32; 9] = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-40, -1e-40, 3.5];
    let (kind, levels) = (g.pick(&[0, 1, 1, 2, 3, 4, 5]), g.pick(&[1.0, 2.0, 4.0]));
    let nan = |g: &mut Gen| f32::from_bits(0x7f80_0001 | (g.bits() as u32));
    let value = |g: &mut Gen| match kind {
        0 => 50.0 * g.unit(),
        1 => (levels * g.unit()).floor(),
        2 => g.any_of(&EDGES),
        3 if g.bits().is_multiple_of(3) => nan(g),
        3 => -(g.unit().abs() + 1.0),
        4 => g.any_of(&[-0.0, 0.0, -1.0]),
        _ => nan(g),
    };
    g.block();
    (0..n).map(|_| value(g)).collect()
}

/// Rows with sizes around the workgroup's, with ties, both zeros, infinities and NaN.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.pick(&[1, 2, 255, 256, 257, 1021, 5003]));
    let mut case = Case::new(rows);
    let values = hard_order(g, (rows * dim) as usize);
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let y = argmax(&mut case.rec, x);
    case.expect(y);
    case
}
