//! Lets operations absorb the ones that made what they alone read. Unlike the patterns of `fuse`, the two need not be neighbours:
//! values are made once, so an operation without state may move to its reader.

use crate::device::Caps;
use crate::ops::{
    Op, Operation, attention_batch, attention_merge, attention_short, glu_pack_f16, glu_pack_q8, matmul_few_pair, matmul_few_triple,
    matmul_vec_glu, matmul_vec_group, matmul_vec_norm, norm_add, norm_pack_f16, norm_pack_q8, norm_rope, norm_rope_append, norm_rope_heads,
};
use crate::record::Node;
use crate::tensor::{State, StateKind, Tensor};
use std::collections::HashMap;

use super::Uses;

/// An operation that does the work of its reader and of the makers of some values.
pub(crate) struct Absorbed {
    pub op: Op,
    /// The values that nobody makes any more.
    pub of: Vec<Tensor>,
    /// Whether it takes the place of the (one) maker, whose other results have readers before this one.
    pub early: bool,
}

/// What a rule may ask about the operations before.
pub(crate) struct Makers<'a> {
    nodes: &'a [Option<Node>],
    makers: &'a HashMap<u32, usize>,
    uses: &'a Uses,
    at: usize,
    states: &'a [StateKind],
    pub caps: &'a Caps,
}

impl Makers<'_> {
    /// The operation that made a value which nobody else reads.
    pub fn alone(&self, t: Tensor) -> Option<&Op> {
        let made = self.makers.get(&t.id).filter(|_| self.uses.once(t))?;
        self.nodes[*made].as_ref().map(|node| &node.op)
    }

    /// The operation that made a value, whoever else reads it.
    pub fn of(&self, t: Tensor) -> Option<&Op> {
        self.nodes[*self.makers.get(&t.id)?].as_ref().map(|node| &node.op)
    }

    /// What a state holds.
    pub fn kind(&self, state: State) -> StateKind {
        self.states[state.0 as usize]
    }

    /// The last operation before this one that is `wanted`.
    pub fn latest(&self, wanted: impl Fn(&Op) -> bool) -> Option<&Op> {
        self.nodes[..self.at].iter().rev().flatten().map(|node| &node.op).find(|op| wanted(op))
    }

    /// Whether an operation before this one reads a value.
    pub fn read_since(&self, t: Tensor) -> bool {
        self.nodes[..self.at].iter().flatten().any(|node| node.op.io().reads.iter().any(|read| read.id == t.id))
    }
}

/// A rule: the operation that an operation becomes.
type Rule = fn(&Op, &Makers<'_>) -> Option<Absorbed>;

/// The rules, tried in this order at every operation, front to back, until none applies: what one made, a later one may absorb.
const RULES: &[Rule] = &[
    norm_pack_q8::absorb,
    norm_pack_f16::absorb,
    matmul_vec_norm::absorb,
    norm_add::absorb,
    glu_pack_q8::absorb,
    glu_pack_f16::absorb,
    matmul_vec_glu::absorb,
    norm_rope::absorb,
    norm_rope_append::absorb,
    norm_rope_heads::absorb,
    attention_merge::absorb,
    attention_short::absorb,
    attention_batch::absorb,
    matmul_vec_group::absorb,
    matmul_few_triple::absorb,
    matmul_few_pair::absorb,
];

/// Applies the rules once, front to back.
pub fn absorb(nodes: Vec<Node>, read_back: &[Tensor], states: &[StateKind], caps: &Caps) -> Vec<Node> {
    let uses = Uses::of(&nodes, read_back);
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut makers: HashMap<u32, usize> = HashMap::new();
    for at in 0..nodes.len() {
        let Some(Node { mut op, layer }) = nodes[at].take() else { continue };
        let mut place = at;
        loop {
            let seen = Makers { nodes: &nodes, makers: &makers, uses: &uses, at: place, states, caps };
            let Some(Absorbed { op: more, of, early }) = RULES.iter().find_map(|rule| rule(&op, &seen)) else { break };
            let places: Vec<usize> = of.iter().map(|t| makers[&t.id]).collect();
            places.iter().for_each(|&place| nodes[place] = None);
            if early {
                place = places[0];
            }
            op = more;
        }
        for t in op.io().writes {
            makers.insert(t.id, place);
        }
        nodes[place] = Some(Node { op, layer });
    }
    nodes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use crate::device::Caps;
    use crate::ops::{add, matmul, rms_norm, scale};
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use gguf::GgmlType;

    /// The rows of a fast plan of what `then` records of two inputs of `step` rows.
    fn rows(step: u32, then: impl Fn(&mut Recorder, [Tensor; 2])) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
        let inputs = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, step, 256)));
        then(&mut rec, inputs);
        let options = PlanOptions { fast: true, ..PlanOptions::default() };
        plan(&rec, &Caps::WEBGPU, &options).unwrap().steps.iter().map(|step| step.dispatch.row.name).collect()
    }

    #[test]
    fn a_sum_with_a_norm_takes_a_factor_before_it_is_packed() {
        let scaled = |packed: bool, kept: bool| {
            move |rec: &mut Recorder, [a, b]: [Tensor; 2]| {
                let b = rms_norm(rec, b, None, 1e-6);
                let h = add(rec, a, b);
                let y = scale(rec, h, 0.5);
                let product = packed.then(|| matmul(rec, Weight { id: 0, ty: GgmlType::Q8_0, rows: 64, cols: 256 }, y));
                for t in [Some(y), product, kept.then_some(h)].into_iter().flatten() {
                    rec.output(t);
                }
            }
        };
        assert_eq!(rows(1, scaled(false, false)), ["norm_add"]);
        assert_eq!(rows(1, scaled(true, false)), ["norm_add_q8", "matmul_vec_q8"]);
        assert_eq!(rows(1, scaled(false, true)), ["norm_add", "scale"]);
    }
}
