//! Parity cases of `matmul_experts_input` and `matmul_vec_experts_input`.

use super::group_experts_case::choices;
use super::matmul_experts::MatmulExperts;
use super::matmul_experts_input::matmul_experts_input;
use super::route::Routes;
use super::sum_slots::sum_slots;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_experts_input", case), ("matmul_vec_experts_input", vec_case)];

fn derivative(g: &mut Gen, rows: u32) -> Case {
    let ty = g.format();
    let block = ty.block_size() as u32;
    let (count, cols) = (g.pick(&[1, 2, 5]), g.cols(ty).min(512) / block * block);
    let (n, halves, k) =
        (g.pick(&[1, 3, 15, 16, 17, 64, 127, 200]), g.pick(&[1, 2]), g.pick(&[1, 2, count]).min(count));
    let mut case = Case::new(rows);
    let w = case.weight(g, ty, count * halves * n, cols);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    let dy = case.tensor(g, k * n).heads(k);
    let first = if g.coin() { (halves - 1) * n } else { 0 };
    let dx = matmul_experts_input(&mut case.rec, &MatmulExperts { w, first, x: dy, routes, y: dy }, dy);
    case.expect(dx);
    let sum = sum_slots(&mut case.rec, dx);
    case.expect(sum);
    case
}

/// Every format; one to all of one to five experts, some idle or one busy; tile edges in all three
/// dimensions, half of every expert's rows, row lengths that are not a multiple of 4, weights split
/// within an expert.
pub fn case(g: &mut Gen) -> Case {
    let rows = g.pick(&[9, 10, 33, 70, 130]);
    derivative(g, rows)
}

/// The formats, experts and edges of [`case`], in steps of few rows.
pub fn vec_case(g: &mut Gen) -> Case {
    let rows = g.pick(&[1, 2, 4, 5]);
    derivative(g, rows)
}
