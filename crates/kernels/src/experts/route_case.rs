//! Parity cases of `route`.

use super::route::{MAX_EXPERTS, Routes, route};
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("route", case)];

/// One to all of 1 to 1024 experts, ties, both zeros, logits whose exponentials overflow,
/// normalized or not, with and without a factor per expert.
pub fn case(g: &mut Gen) -> Case {
    let (rows, count) = (g.small(), g.pick(&[1, 2, 8, 60, 127, 128, 129, 256, MAX_EXPERTS]));
    let mut case = Case::new(rows);
    routes(&mut case, g, rows, count);
    case
}

/// The routes of such rows, which the case expects.
pub(super) fn routes(case: &mut Case, g: &mut Gen, rows: u32, count: u32) -> Routes {
    let k = g.pick(&[1, 2, 8, count]).min(count);
    let (ties, spread) = (g.coin(), g.pick(&[1.0, 8.0, 200.0]));
    let logit = |g: &mut Gen| if ties { (4.0 * g.unit()).trunc() } else { spread * g.unit() };
    g.block();
    let values = (0..rows * count).map(|_| logit(g)).collect();
    let logits = case.given(Shape::new(Lead::Step, rows, count), values);
    let scale = g.coin().then(|| case.vector(g, count));
    let routes = route(&mut case.rec, logits, k, g.coin(), scale);
    case.expect(routes.experts);
    case.expect(routes.weights);
    routes
}
