//! Parity cases of `matmul_vec_q8_experts_glu`, with and without the choice of the experts, and of
//! `matmul_vec_q8_experts_sum`.

use super::combine_experts::combine_experts;
use super::group_experts_case::choices;
use super::matmul_experts::MatmulExperts;
use super::matmul_vec_q8_experts::MatmulVecQ8Experts;
use super::route::Routes;
use super::route_case::routes;
use crate::caps::table::measured::EXPERTS_LONG_COLUMNS;
use crate::elementwise::geglu::geglu;
use crate::elementwise::swiglu::swiglu;
use crate::graph::tensor::{Lead, Shape, Tensor, Weight};
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;
use std::ops::Range;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec_q8_experts_glu", case), ("matmul_vec_q8_experts_sum", sum_case)];

/// A case with the routes of `rows` rows to one to all of one to five experts.
fn routed(g: &mut Gen) -> (Case, Routes, u32) {
    let (rows, count) = (g.pick(&[1, 1, 2, 5, 8]), g.pick(&[1, 2, 5]));
    let k = g.pick(&[1, 2, count]).min(count);
    let mut case = Case::new(rows);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    (case, routes, rows)
}

/// The product with rows that are packed already: its oracle rounds as well.
pub(crate) fn product(
    case: &mut Case,
    w: Weight,
    rows: Range<u32>,
    x: Tensor,
    packed: Tensor,
    routes: &Routes,
) -> Tensor {
    let y = case.rec.make(Shape { heads: routes.chosen(), dim: rows.len() as u32, ..x.shape });
    let of = MatmulExperts { w, first: rows.start, x, routes: *routes, y };
    case.rec.push(MatmulVecQ8Experts { of, packed });
    y
}

/// The gated products after the choice of one to all of up to 256 experts, or with given choices;
/// gate and up in two tensors or in the halves of one, both activations, a row of x normed or not;
/// rows shorter and longer than the lanes read at a time, and long rows, which more lanes read.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let long = g.pick(&[false, false, true]);
    let cols = g.cols(ty).max(128).next_multiple_of(32) + if long { EXPERTS_LONG_COLUMNS } else { 0 };
    let n = if long { 32 } else { 32 * g.pick(&[1, 2, 3]) };
    let (case, routes) = if g.coin() {
        let (rows, count) =
            (g.pick(&[1, 1, 2, 5, 8]), g.pick(if long { &[1, 2, 33] } else { &[1, 2, 5, 33, 129, 256] }));
        let mut case = Case::new(rows);
        let routes = routes(&mut case, g, rows, count);
        (case, routes)
    } else {
        let (case, routes, _) = routed(g);
        (case, routes)
    };
    gated(case, g, ty, &routes, cols, n)
}

/// Gate, up, activation and packing as a model records them: gate and up in two tensors or in the
/// halves of one, both activations, a row of x normed or not. Gates are small: gelu of a large
/// negative gate has the error of the gate many times, and a block of such results alone has a
/// scale of its own.
pub(super) fn gated(mut case: Case, g: &mut Gen, ty: GgmlType, routes: &Routes, cols: u32, n: u32) -> Case {
    let x = case.uniform(g, cols, 0.125);
    let norm = g.coin().then(|| case.given_vector(g.units(cols, 0.125)));
    let x = norm.map_or(x, |norm| rms_norm(&mut case.rec, x, Some(norm), 1e-6));
    let packed = pack_q8(&mut case.rec, x);
    let weights = if g.coin() {
        let both = case.weight(g, ty, routes.count * 2 * n, cols);
        let first = if g.coin() { [0, n] } else { [n, 0] };
        first.map(|first| (both, first))
    } else {
        [0, 0].map(|first| (case.weight(g, ty, routes.count * n, cols), first))
    };
    let [gate, up] = weights.map(|(w, first)| product(&mut case, w, first..first + n, x, packed, routes));
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect(packed);
    case
}

/// Every format with units, any of its rows, an even and an odd number of results, rows with fewer
/// and with more units than a workgroup has threads.
pub fn sum_case(g: &mut Gen) -> Case {
    let ty = g.format_with(Format::in_8_bits);
    let (cols, n, halves) = (g.cols(ty).max(128), g.pick(&[31, 32, 65]), g.pick(&[1, 2]));
    let (mut case, routes, rows) = routed(g);
    let chosen = routes.chosen();
    let w = case.weight(g, ty, routes.count * halves * n, cols);
    let x: Tensor = case.tensor(g, chosen * cols);
    let packed = pack_q8(&mut case.rec, x);
    let y = product(&mut case, w, (halves - 1) * n..halves * n, x.heads(chosen), packed, &routes);
    let shares = g.units(rows * chosen, 1.0);
    let weights = case.given(Shape::new(Lead::Step, rows, chosen), shares);
    let y = combine_experts(&mut case.rec, y, weights);
    case.expect(y);
    case
}
