//! Merges producers into the operation that is their only reader. The two need not be neighbours:
//! every value is made once, so an operation without state may move to its consumer.

use super::rules::{Direction, RULES};
use super::view::{Merged, Producers, Uses};
use crate::caps::Caps;
use crate::graph::operation::Operation;
use crate::graph::tensor::{StateKind, Tensor};
use crate::language::{Lowered, Node};
use std::collections::HashMap;

/// Applies the rules once, front to back.
pub fn producers(nodes: Vec<Node>, read_back: &[Tensor], states: &[StateKind], caps: &Caps) -> Vec<Node> {
    let uses = Uses::of(&nodes, read_back);
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut producers: HashMap<u32, usize> = HashMap::new();
    for at in 0..nodes.len() {
        let Some(Node { mut op, mut parts, stage }) = nodes[at].take() else { continue };
        let mut place = at;
        loop {
            let seen = Producers { nodes: &nodes, producers: &producers, uses: &uses, at: place, states, caps };
            let Some(Merged { op: more, of, early }) = rules().find_map(|rule| rule(&op, &seen)) else { break };
            let places: Vec<usize> = of.iter().map(|t| producers[&t.id]).collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let before: Vec<_> =
                sorted.iter().filter_map(|&place| nodes[place].take()).flat_map(|node| node.parts).collect();
            parts = [before, parts].concat();
            if early {
                place = places[0];
            }
            op = more;
        }
        for t in op.io().writes {
            producers.insert(t.id, place);
        }
        nodes[place] = Some(Node { op, parts, stage });
    }
    nodes.into_iter().flatten().collect()
}

/// The rules of this direction.
fn rules() -> impl Iterator<Item = fn(&Lowered, &Producers<'_>) -> Option<Merged>> {
    RULES.iter().filter_map(|rule| if let Direction::Producers(of) = rule.direction { Some(of) } else { None })
}

#[cfg(test)]
mod tests {
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::elementwise::add::add;
    use crate::elementwise::scale::scale;
    use crate::graph::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use crate::matmul::matmul::matmul;
    use crate::norm::rms_norm::rms_norm;
    use crate::plan::{PlanOptions, Precision, plan};
    use gguf::GgmlType;

    /// The kernels of a fast plan of what `then` records, with two inputs of `step` rows.
    fn kernels(step: u32, then: impl Fn(&mut Recorder, [Tensor; 2])) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
        let inputs = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, step, 256)));
        then(&mut rec, inputs);
        let options = PlanOptions::plain().precision(Precision::Fast);
        plan(&rec, &Caps::WEBGPU, &options)
            .unwrap()
            .dispatches
            .iter()
            .map(|placed| placed.dispatch.variant.name)
            .collect()
    }

    #[test]
    fn a_sum_with_a_norm_takes_a_factor_before_it_is_packed() {
        let scaled = |packed: bool, kept: bool| {
            move |rec: &mut Recorder, [a, b]: [Tensor; 2]| {
                let b = rms_norm(rec, b, None, 1e-6);
                let h = add(rec, a, b);
                let y = scale(rec, h, 0.5);
                let product = packed.then(|| matmul(rec, Weight::loaded(0, GgmlType::Q8_0, 64, 256), y));
                for t in [Some(y), product, kept.then_some(h)].into_iter().flatten() {
                    rec.output(t);
                }
            }
        };
        assert_eq!(kernels(1, scaled(false, false)), ["norm_add"]);
        assert_eq!(kernels(1, scaled(true, false)), ["norm_add_q8", "matmul_vec_q8"]);
        assert_eq!(kernels(1, scaled(false, true)), ["norm_add", "scale"]);
    }
}
