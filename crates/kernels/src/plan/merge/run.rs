//! Merges neighbours into one operation, and replaces operations by several with new values between
//! them.

use super::rules::{Direction, OfRun, Origins, RULES};
use super::view::Uses;
use crate::caps::Caps;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::Lower;
use crate::language::{Lowered, Node};

/// Applies the rules of gathers, then the rules of other neighbours, each once, front to back.
pub fn runs(nodes: Vec<Node>, read_back: &[Tensor], caps: &Caps) -> Vec<Node> {
    let uses = Uses::of(&nodes, read_back);
    let gathers =
        RULES.iter().filter_map(|rule| if let Direction::Gather(of) = rule.direction { Some(of) } else { None });
    let others = RULES.iter().filter_map(|rule| if let Direction::Run(of) = rule.direction { Some(of) } else { None });
    let nodes = replaced(&nodes, &uses, caps, &gathers.collect::<Vec<_>>());
    replaced(&nodes, &uses, caps, &others.collect::<Vec<_>>())
}

/// Applies the rules that make new values, each over all operations.
pub fn values(nodes: Vec<Node>, origins: &mut Origins, read_back: &[Tensor], cx: &Lower<'_>) -> Vec<Node> {
    let rules =
        RULES.iter().filter_map(|rule| if let Direction::Values(of) = rule.direction { Some(of) } else { None });
    rules.fold(nodes, |nodes, rule| rule(nodes, origins, read_back, cx))
}

fn replaced(nodes: &[Node], uses: &Uses, caps: &Caps, rules: &[OfRun]) -> Vec<Node> {
    let (mut out, mut at) = (Vec::with_capacity(nodes.len()), 0);
    while at < nodes.len() {
        let rest = &nodes[at..];
        let found: Option<(usize, Lowered)> = rules.iter().find_map(|rule| rule(rest, uses, caps));
        let (taken, op) = found.unwrap_or_else(|| (1, rest[0].op.clone()));
        let parts = rest[..taken].iter().flat_map(|node| node.parts.clone()).collect();
        out.push(Node { op, parts, stage: rest[0].stage });
        at += taken;
    }
    out
}
