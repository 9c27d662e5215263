//! Parity cases of `dropout`.

use super::dropout::dropout;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("dropout", case)];

/// No element dropped, few and most; several keys and tensors.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, rate) = (g.small(), g.dim(), g.pick(&[0.1, 0.0, 0.5, 0.99]));
    let mut case = Case::new(rows);
    let x = case.tensor(g, dim);
    let words = [g.bits() as u32, g.below(1000)].map(f32::from_bits);
    let key = case.given(Shape::new(Lead::Fixed, 1, 2), words.to_vec());
    let y = dropout(&mut case.rec, x, key, g.pick(&[0, 1, 77]), rate);
    case.expect(y);
    case
}
