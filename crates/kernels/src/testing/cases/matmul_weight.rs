//! Parity cases of `matmul_weight`.

use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::ops::backward::matmul_weight;
use crate::ops::{gather_rows, scale};
use crate::testing::parity::Case;

/// Tile edges in all dimensions, sums that hold something already, operands of the rows of the step
/// and of some of its rows, with more rows in the plan than in the step.
pub fn case(g: &mut Gen) -> Case {
    let (rows, n, k) = (g.dim().min(130) + 1, g.dim().min(200), g.dim().min(200));
    let mut case = Case::with_states(rows, &[StateKind::Words(n * k)], 1, 1);
    let state = case.rec.state(0);
    case.words(g, state, n * k);
    let (dy, x) = (case.tensor(g, n), case.tensor(g, k));
    let chosen = g.coin();
    if chosen {
        case.input.out_rows.truncate(rows as usize / 2 + 1);
        let rows = [dy, x].map(|t| gather_rows(&mut case.rec, t));
        let [dy, x] = rows.map(|t| if t.shape.rows > 64 { t.rows_from(64, 64) } else { t });
        matmul_weight(&mut case.rec, dy, x, state);
    } else {
        // Values that a kernel made hold anything in the rows behind the step.
        let [dy, x] = [dy, x].map(|t| scale(&mut case.rec, t, 0.5));
        matmul_weight(&mut case.rec, dy, x, state);
    }
    case
}
