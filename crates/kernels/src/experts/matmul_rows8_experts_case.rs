//! Parity cases of `matmul_rows8_experts` and of `matmul_rows8_experts_glu`.

use super::group_experts_case::choices;
use super::matmul_experts::matmul_experts;
use super::matmul_vec_q8_experts_glu_case::gated;
use super::route::Routes;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_rows8_experts", case), ("matmul_rows8_experts_glu", glu_case)];

/// A case with grouped slots: on average up to 4 slots per expert, or up to 16. Some experts are
/// idle, or a few have so many slots that their tiles are full.
fn grouped(g: &mut Gen) -> (Case, Routes) {
    let few = [(9, 5, 2), (16, 5, 1), (33, 33, 2), (9, 33, 8)];
    let more = [(9, 1, 1), (16, 1, 1), (12, 2, 2), (16, 5, 5), (40, 5, 2), (65, 33, 8)];
    let (rows, count, k) = if g.coin() { g.pick(&few) } else { g.pick(&more) };
    // Every row may be one of another sequence.
    let mut case = Case::with_states(rows, &[], rows + 3, 1);
    case.options = case.options.precision(Precision::Fast).sequences(rows + 3);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    (case, routes)
}

/// Columns such that 32, 64 or 128 threads have a block each, or take blocks in turns.
fn cols(g: &mut Gen, ty: gguf::GgmlType) -> u32 {
    let long = g.pick(&[0, 0, 1792, 4096]);
    (long + g.cols(ty)).max(128).next_multiple_of(32)
}

/// Every format with units; a row of x per slot or a shared row, normed or not; a number of rows
/// that is no multiple of a workgroup's, half of every expert's rows, weights split within an
/// expert. The planner makes it from a plain product.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (mut case, routes) = grouped(g);
    let cols = cols(g, ty);
    let (n, halves) = (g.pick(&[31, 32, 65]), g.pick(&[1, 2]));
    let w = case.weight(g, ty, routes.count * halves * n, cols);
    let each = g.pick(&[1, routes.chosen()]);
    let x = case.tensor(g, each * cols);
    let x = if each == 1 && g.coin() { rms_norm(&mut case.rec, x, None, 1e-6) } else { x.heads(each) };
    let first = if g.coin() { (halves - 1) * n } else { 0 };
    let y = matmul_experts(&mut case.rec, w, first..first + n, x, &routes);
    case.expect(y);
    case
}

/// Every format with units; gate and up in two tensors or in the halves of one, both activations, a
/// row of x normed or not.
pub fn glu_case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (case, routes) = grouped(g);
    let cols = cols(g, ty);
    let n = 32 * g.pick(&[1, 2, 3]);
    gated(case, g, ty, &routes, cols, n)
}
