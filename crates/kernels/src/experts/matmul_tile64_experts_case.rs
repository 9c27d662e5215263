//! Parity cases of `matmul_tile64_experts`.

use super::group_experts_case::choices;
use super::matmul_experts::matmul_experts;
use super::route::Routes;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::matmul::matmul_tile128::DEPTH;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile64_experts", case)];

/// Every format; one to all of one to five experts, some idle or one busy, so that tiles have one
/// to all bands and partly filled ones; a row of x per slot or a shared row, far outside the range
/// of f16 or not; tile edges in all three dimensions, half of every expert's rows, weights split
/// within an expert. The planner makes it from a plain product.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[9, 16, 33, 70, 97, 130, 260]), g.format());
    let (count, cols) = (g.pick(&[1, 2, 5]), g.cols(ty).next_multiple_of(DEPTH));
    let (n, halves, k) =
        (g.pick(&[1, 3, 64, 96, 127, 128, 129, 200]), g.pick(&[1, 2]), g.pick(&[1, 2, count]).min(count));
    let mut case = Case::new(rows);
    case.options = case.options.precision(Precision::Fast);
    case.halves = true;
    let w = case.weight(g, ty, count * halves * n, cols);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    let each = g.pick(&[1, k]);
    // A single row of weights never has activations that are all alike: its sum may be almost zero.
    let x = if n == 1 || g.coin() { case.uniform(g, each * cols, 1e6) } else { case.tensor(g, each * cols) };
    let first = if g.coin() { (halves - 1) * n } else { 0 };
    let y = matmul_experts(&mut case.rec, w, first..first + n, x.heads(each), &routes);
    case.expect(y);
    case
}
