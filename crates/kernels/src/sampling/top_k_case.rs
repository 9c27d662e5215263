//! Parity cases of `top_k`.

use super::argmax_case::hard_order;
use super::top_k::{MAX_K, top_k};
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("top_k", case)];

/// From one element to the largest `k`, in rows shorter and longer than `k`, with ties beyond the
/// list, infinities and NaN. In some cases every row begins with its largest element, so that an
/// element read past the end of a row would be among the results.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), g.pick(&[1, 8, 128, 511, 513, 1024, 1025, 5003]));
    let mut case = Case::new(rows);
    let mut values = hard_order(g, (rows * dim) as usize);
    if g.coin() {
        values.iter_mut().step_by(dim as usize).for_each(|first| *first = f32::INFINITY);
    }
    let x = case.given(Shape::new(Lead::Step, rows, dim), values);
    let k = g.pick(&[1, 2, 8, 40, 255, MAX_K]);
    let y = top_k(&mut case.rec, x, k);
    case.expect(y);
    case
}
