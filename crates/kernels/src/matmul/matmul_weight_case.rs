//! Parity cases of `matmul_weight`.

use super::matmul_weight::matmul_weight;
use crate::elementwise::gather_rows::gather_rows;
use crate::elementwise::scale::scale;
use crate::graph::tensor::{StateKind, Tensor};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_weight", case)];

/// Tile edges in all dimensions, sums that hold something already, operands of the rows of the step
/// and of some of its rows, with more rows in the plan than in the step.
pub fn case(g: &mut Gen) -> Case {
    let (rows, n, k) = (g.dim().min(130) + 1, g.dim().min(200), g.dim().min(200));
    let mut case = Case::with_states(rows, &[StateKind::Words(n * k)], 1, 1);
    let state = case.rec.state(0);
    case.words(g, state, n * k);
    let (dy, x) = (case.tensor(g, n), case.tensor(g, k));
    recorded(g, &mut case, dy, x);
    case
}

/// Records the derivative over the rows of the step, or over some of them.
pub fn recorded(g: &mut Gen, case: &mut Case, dy: Tensor, x: Tensor) {
    let (state, rows) = (case.rec.state(0), case.input.positions.len());
    let chosen = g.coin();
    if chosen {
        case.input.out_rows.truncate(rows / 2 + 1);
        let chosen = [dy, x].map(|t| gather_rows(&mut case.rec, t));
        let [dy, x] = chosen.map(|t| if t.shape.rows > 64 { t.rows_from(64, 64) } else { t });
        matmul_weight(&mut case.rec, dy, x, state);
    } else {
        // Values that a kernel made hold anything in the rows behind the step.
        let [dy, x] = [dy, x].map(|t| scale(&mut case.rec, t, 0.5));
        matmul_weight(&mut case.rec, dy, x, state);
    }
}
