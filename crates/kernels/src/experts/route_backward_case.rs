//! Parity cases of `route_backward`.

use super::route::{MAX_EXPERTS, Route, route};
use super::route_backward::route_backward;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("route_backward", case)];

/// One to all of 1 to 1024 experts, logits close together and so far apart that one expert has
/// nearly all the weight, normalized or not, with and without a factor per expert.
pub fn case(g: &mut Gen) -> Case {
    let (rows, count) = (g.small(), g.pick(&[1, 2, 8, 60, 127, 128, 129, 256, MAX_EXPERTS]));
    let k = g.pick(&[1, 2, 8, count]).min(count).min(64);
    let spread = g.pick(&[1.0, 8.0, 20.0]);
    let mut case = Case::new(rows);
    let values = g.units(rows * count, spread);
    let logits = case.given(Shape::new(Lead::Step, rows, count), values);
    let scale = g.coin().then(|| case.vector(g, count));
    let normalize = g.coin();
    let routes = route(&mut case.rec, logits, k, normalize, scale);
    let dweights = case.uniform(g, k, 2.0);
    let of = Route { logits, normalize, scale, experts: routes.experts, weights: routes.weights };
    let dlogits = route_backward(&mut case.rec, &of, dweights);
    case.expect(dlogits);
    case
}
