//! Parity cases of `column_sum`.

use super::column_sum::column_sum;
use super::rms_norm_weight_backward::rms_norm_weight_backward;
use crate::elementwise::gather_rows::gather_rows;
use crate::elementwise::scale::scale;
use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::RmsNorm;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("column_sum", case)];

/// Sums of rows, of products of rows, and of products with a factor for each row, as the derivative
/// of a norm has them; added to sums that hold something; whole rows, and rows in which a shorter
/// row repeats; rows of the step and some of its rows, with more rows in the plan than in the step.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, repeats) = (g.pick(&[1, 2, 3, 5, 26, 130]), g.dim().min(300), g.pick(&[1, 1, 2, 5]));
    let mut case = Case::with_states(rows, &[StateKind::Words(dim)], 1, 1);
    let state = case.rec.state(0);
    case.words(g, state, dim);
    let (a, b) = (case.tensor(g, dim * repeats), case.tensor(g, dim * repeats));
    let (chosen, operands) = (g.coin(), g.pick(&[1, 2, 3]));
    let [a, b] = if chosen {
        case.input.out_rows.truncate(rows as usize / 2 + 1);
        [a, b].map(|t| gather_rows(&mut case.rec, t)).map(|t| if t.shape.rows > 64 { t.rows_from(64, 64) } else { t })
    } else {
        // Values that a kernel made hold anything in the rows behind the step.
        [a, b].map(|t| scale(&mut case.rec, t, 0.5))
    };
    if operands == 3 {
        let [x, dy] = [b, a].map(|t| t.heads(repeats));
        rms_norm_weight_backward(&mut case.rec, &RmsNorm { x, w: None, eps: 1e-6, y: dy }, dy, state);
    } else {
        column_sum(&mut case.rec, a, (operands == 2).then_some(b), state);
    }
    case
}
