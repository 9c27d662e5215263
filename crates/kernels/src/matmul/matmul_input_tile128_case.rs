//! Parity cases of `matmul_input_tile128`.

use super::matmul_input::matmul_input;
use super::matmul_tile128::DEPTH;
use crate::kernel::random::Gen;
use crate::plan::{PlanOptions, Precision};
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_input_tile128", case)];

/// Every format, tile edges in all three dimensions, derivatives far outside the range of f16,
/// weights in pieces; the planner makes it from a plain derivative in plans of training.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[16, 33, 127, 128, 129, 300]), g.format());
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[4, 16, 28, 32, 36, 128, 132, 300]));
    let mut case = Case::new(rows);
    case.options = PlanOptions::training().precision(Precision::Fast);
    let w = case.weight(g, ty, n, cols);
    let dy = if g.coin() { case.uniform(g, n, 1e-9) } else { case.tensor(g, n) };
    let dx = matmul_input(&mut case.rec, w, dy);
    case.expect(dx);
    case
}
