//! Parity cases of `level_f16`.

use super::level_f16::level_f16;
use super::pack_f16::pack_f16;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("level_f16", case)];

/// Parts with equal tops, with tops that differ by less and by more than f16 covers, and with
/// zeros; rows of zeros; more parts than threads.
pub fn case(g: &mut Gen) -> Case {
    let (rows, parts, each) = (g.small(), g.pick(&[1, 2, 5, 255, 257]), g.pick(&[4, 12, 32]));
    let mut case = Case::new(rows);
    let x = case.tensor(g, parts * each);
    let (_, halves) = pack_f16(&mut case.rec, x);
    let zeros = g.coin();
    let sizes: &[f32] = if zeros { &[0.0] } else { &[1.0, 256.0, 65_536.0, 1.0 / 65_536.0, 0.0] };
    g.block();
    let tops = (0..rows * parts).map(|_| g.any_of(sizes)).collect();
    let tops = case.given(Shape::new(Lead::Step, rows, parts), tops);
    let scales = level_f16(&mut case.rec, tops, halves);
    case.expect(scales);
    case.expect(halves);
    case
}
