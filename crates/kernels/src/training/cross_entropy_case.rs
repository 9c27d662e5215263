//! Parity cases of `cross_entropy`, its derivative, and their parts.

use super::cross_entropy::{CrossEntropy, cross_entropy};
use super::cross_entropy_backward::cross_entropy_backward;
use crate::elementwise::gather_rows::gather_rows;
use crate::elementwise::join_rows::join_rows;
use crate::elementwise::scale::scale;
use crate::graph::tensor::{Input, Tensor};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("cross_entropy", case), ("cross_entropy_backward", backward_case)];

/// Rows of logits with targets, some of them past the vocabulary; few logits and many, close
/// together and far apart.
fn rows(g: &mut Gen) -> (Case, [Tensor; 3]) {
    let (rows, vocabulary) = (g.pick(&[1, 3, 70, 130]), g.pick(&[1, 2, 255, 256, 1000]));
    let mut case = Case::new(rows);
    case.input.targets = (0..rows).map(|_| (g.bits() % u64::from(vocabulary + 2)) as u32).collect();
    case.input.loss_weights = (0..rows).map(|_| g.unit()).collect();
    let size = g.pick(&[1.0, 10.0, 40.0]);
    let x = case.uniform(g, vocabulary, size);
    let logits = gather_rows(&mut case.rec, x);
    let [targets, weights] = [Input::Targets, Input::LossWeights].map(|input| case.rec.input(input));
    (case, [logits, targets, weights])
}

pub fn case(g: &mut Gen) -> Case {
    let (mut case, [logits, targets, _]) = rows(g);
    let y = cross_entropy(&mut case.rec, logits, targets);
    case.expect(y);
    case
}

/// The derivative, in parts of 64 rows.
pub fn backward_case(g: &mut Gen) -> Case {
    let (mut case, all) = rows(g);
    let mut parts = vec![];
    for first in (0..all[0].shape.rows).step_by(64) {
        let [logits, targets, weights] = all.map(|t| t.rows_from(first, 64));
        let logits = scale(&mut case.rec, logits, 1.0);
        let y = cross_entropy(&mut case.rec, logits, targets);
        parts.push(cross_entropy_backward(&mut case.rec, &CrossEntropy { logits, targets, y }, weights));
    }
    let joined = join_rows(&mut case.rec, parts);
    case.expect(joined);
    case
}
