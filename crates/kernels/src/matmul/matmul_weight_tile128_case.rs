//! Parity cases of `matmul_weight_tile128`.

use super::matmul_weight_case::recorded;
use crate::graph::tensor::{Lead, Shape, StateKind};
use crate::kernel::random::Gen;
use crate::plan::{PlanOptions, Precision};
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_weight_tile128", case)];

/// Tile edges in all dimensions, rows of very different magnitudes and rows of zeros, sums that
/// hold something already; the planner makes it from a plain derivative in plans of training.
pub fn case(g: &mut Gen) -> Case {
    let (rows, n, k) = (
        g.pick(&[16, 31, 33, 64, 129, 300]),
        g.pick(&[4, 16, 124, 128, 132, 260]),
        g.pick(&[4, 16, 124, 128, 132, 260]),
    );
    let mut case = Case::with_states(rows, &[StateKind::Words(n * k)], 1, 1);
    case.options = PlanOptions::training().precision(Precision::Fast);
    let state = case.rec.state(0);
    case.given_words(state, g.units(n * k, 1e-2));
    let mut dy = g.units(rows * n, 1e-9);
    for (t, row) in dy.chunks_exact_mut(n as usize).enumerate() {
        // Row 0 stays as it is.
        let by = [1.0, 0.0, 1.0 / 1024.0, 1e-6][t % 4];
        row.iter_mut().for_each(|v| *v *= by);
    }
    let dy = case.given(Shape::new(Lead::Step, rows, n), dy);
    let x = case.uniform(g, k, 1e6);
    recorded(g, &mut case, dy, x);
    case
}
