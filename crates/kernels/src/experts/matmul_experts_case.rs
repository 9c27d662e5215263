//! Parity cases of `matmul_experts`.

use super::group_experts_case::choices;
use super::matmul_experts::matmul_experts;
use super::route::Routes;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_experts", case)];

/// A product of `rows` rows with experts' matrices, with all of their rows or one half.
pub(crate) fn product(g: &mut Gen, rows: u32) -> Case {
    let ty = g.format();
    let block = ty.block_size() as u32;
    let (count, cols) = (g.pick(&[1, 2, 5]), g.cols(ty).min(512) / block * block);
    let (n, halves, k) =
        (g.pick(&[1, 3, 64, 96, 127, 128, 129, 200]), g.pick(&[1, 2]), g.pick(&[1, 2, count]).min(count));
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, count * halves * n, cols);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    let each = g.pick(&[1, k]);
    let x = case.tensor(g, each * cols).heads(each);
    let first = if g.coin() { (halves - 1) * n } else { 0 };
    let y = matmul_experts(&mut case.rec, w, first..first + n, x, &routes);
    case.expect(y);
    case
}

/// Every format; one to all of one to five experts, some idle or one busy; a row of x per slot or a
/// shared row; tile edges in all three dimensions, half of every expert's rows, row lengths that
/// are not a multiple of 4, weights split within an expert.
pub fn case(g: &mut Gen) -> Case {
    let rows = g.pick(&[9, 10, 33, 70, 130]);
    product(g, rows)
}
