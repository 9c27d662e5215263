//! Parity cases of `matmul_vec_q8_experts`.

use super::group_experts_case::choices;
use super::matmul_experts::matmul_experts;
use super::route::Routes;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_q8_experts", case)];

/// Every format with units; one to eight rows, one to all of one to five experts; a row of x per
/// slot or a shared row, normed or not; rows shorter and longer than the lanes read at a time, odd
/// numbers of rows, half of every expert's rows, weights split within an expert. The planner makes
/// it from a plain product.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[1, 1, 2, 5, 8]), g.format_with(Format::in_8_bits));
    let (count, cols) = (g.pick(&[1, 2, 5]), g.cols(ty).max(128));
    // A single result could cancel to zero, where a relative error means nothing.
    let (n, halves, k) = (g.pick(&[31, 32, 65]), g.pick(&[1, 2]), g.pick(&[1, 2, count]).min(count));
    let mut case = Case::new(rows);
    case.options = case.options.precision(Precision::Fast);
    let w = case.weight(g, ty, count * halves * n, cols);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    let each = g.pick(&[1, k]);
    let x = case.tensor(g, each * cols);
    let x = if each == 1 && g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x.heads(each) };
    let first = if g.coin() { (halves - 1) * n } else { 0 };
    let y = matmul_experts(&mut case.rec, w, first..first + n, x, &routes);
    case.expect(y);
    case
}
