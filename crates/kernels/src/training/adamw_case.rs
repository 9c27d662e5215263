//! Parity cases of `adamw` and `count_step`.

use super::adamw::{Moments, adamw, adamw_step};
use super::count_step::count_step;
use crate::graph::operation::Parameter;
use crate::graph::tensor::{Lead, Shape, StateKind, Tensor};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::AdamwSpec;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("adamw", case), ("count_step", count_case)];

/// The squared norm, which is a number or not.
fn squares(case: &mut Case, g: &mut Gen) -> Tensor {
    let value = g.pick(&[0.0, 1e-12, 4.0, 1e20, f32::INFINITY, f32::NAN]);
    case.given(Shape::new(Lead::Fixed, 1, 1), vec![value])
}

/// Moments that hold something, gradients below and above the largest norm, early and late steps,
/// rates so large that their effect shows, and norms that are not finite.
pub fn case(g: &mut Gen) -> Case {
    let n = g.pick(&[1, 2, 255, 256, 257, 1021]);
    let mut case = Case::with_states(1, &[StateKind::Words(n); 4], 1, 1);
    let [p, gradient, m, v] = [0, 1, 2, 3].map(|n| case.rec.state(n));
    for state in [p, gradient, m] {
        case.words(g, state, n);
    }
    case.positive_words(g, v, n);
    let spec = AdamwSpec {
        beta1: g.pick(&[0.9, 0.0]),
        beta2: g.pick(&[0.999, 0.95]),
        eps: g.pick(&[1e-8, 0.1]),
        decay: g.pick(&[0.01, 0.0, 0.5]),
    };
    let (rate, most, t) = (g.pick(&[0.5, 1e-2]), g.pick(&[1.0, f32::MAX]), g.pick(&[1, 2, 10, 100_000]));
    let squares = squares(&mut case, g);
    let step = case.given(Shape::new(Lead::Fixed, 1, 4), adamw_step(&spec, rate, most, t).to_vec());
    adamw(&mut case.rec, spec, Moments { p, gradient, m, v }, squares, step);
    case
}

/// A count before the first step and later.
pub fn count_case(g: &mut Gen) -> Case {
    let mut case = Case::with_states(1, &[StateKind::Words(1)], 1, 1);
    let (count, before) = (case.rec.state(0), g.pick(&[0.0, 7.0]));
    case.given_words(count, vec![before]);
    let squares = squares(&mut case, g);
    count_step(&mut case.rec, squares, count);
    case
}

impl Parameter for AdamwSpec {
    fn wrong(&self, _: &'static str) -> Vec<(&'static str, Self)> {
        let Self { beta1, beta2, eps, decay } = *self;
        vec![
            ("beta1", Self { beta1: 0.99 * beta1, ..*self }),
            ("beta2", Self { beta2: 0.99 * beta2, ..*self }),
            ("eps", Self { eps: 1.01 * eps, ..*self }),
            ("decay", Self { decay: 1.01 * decay, ..*self }),
        ]
    }
}
