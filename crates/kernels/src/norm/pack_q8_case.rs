//! Parity cases of `pack_q8`.

use super::pack_q8::{BLOCK, pack_q8};
use crate::graph::tensor::{Lead, Shape, Tensor};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("pack_q8", case)];

/// `x` [1, cols] in 8 bits for a product. If `normed`, the kernel packs it that leaves the norm's
/// factor to the product.
pub(crate) fn activations(case: &mut Case, g: &mut Gen, cols: u32, normed: bool) -> Tensor {
    let x = case.tensor(g, cols);
    let x = if normed { crate::norm::rms_norm::rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    pack_q8(&mut case.rec, x)
}

/// A block whose other values lie in the middle between two quants, or next to it.
pub(crate) fn between(g: &mut Gen) -> Vec<f32> {
    g.block();
    let largest = g.pick(&[1.0, 1e-3, 1e6]) * (g.unit().abs() + 0.5);
    let scale = f32::from_bits(((largest * (1.0 / 127.0)).to_bits() + 255) & !255);
    let value = |g: &mut Gen| {
        let middle = ((126.0 * g.unit()).floor() + 0.5) * scale;
        g.any_of(&[middle, middle.next_up(), middle.next_down()])
    };
    (0..BLOCK).map(|i| if i == 0 { largest } else { value(g) }).collect()
}

/// Blocks below this magnitude count as zeros.
pub(crate) const LEAST: f32 = 1e-30;

/// Rows of one block and of many, of every kind of values, with blocks of zeros, of the smallest
/// magnitudes that are not zeros, and of values between two quants; the words must be equal.
pub fn case(g: &mut Gen) -> Case {
    let (rows, blocks) = (g.small(), g.pick(&[1, 2, 3, 63, 64, 65]));
    let mut case = Case::new(rows);
    let x = if g.coin() {
        case.tensor(g, BLOCK * blocks)
    } else {
        let block = |g: &mut Gen| match g.pick(&[0, 0, 1, 2]) {
            0 => between(g),
            1 => vec![LEAST; BLOCK as usize],
            _ => vec![LEAST.next_down(); BLOCK as usize],
        };
        let values = (0..rows * blocks).flat_map(|_| block(g)).collect();
        case.given(Shape::new(Lead::Step, rows, BLOCK * blocks), values)
    };
    let packed = pack_q8(&mut case.rec, x);
    case.expect(packed);
    case
}
