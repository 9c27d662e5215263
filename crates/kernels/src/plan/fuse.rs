//! Replaces runs of operations by fused ones, from one table of patterns.

use crate::device::Caps;
use crate::ops::{Op, Operation, add_rms_norm, embed, gather_rows, matmul};
use crate::record::{Node, Recorder};
use crate::tensor::Tensor;
use std::collections::HashMap;

/// How often each value is read, read-backs included: a value with other readers ends a fusion.
pub(crate) struct Uses(HashMap<u32, usize>);

impl Uses {
    pub(crate) fn of(nodes: &[Node], read_back: &[Tensor]) -> Self {
        let mut uses = HashMap::new();
        let read = nodes.iter().flat_map(|n| n.op.io().reads).chain(read_back.iter().copied());
        for t in read {
            *uses.entry(t.id).or_default() += 1;
        }
        Self(uses)
    }

    /// Whether exactly one operation reads this value and nobody reads it back.
    pub(crate) fn once(&self, t: Tensor) -> bool {
        self.0.get(&t.id) == Some(&1)
    }
}

/// A pattern looks at the operations from some node on and may replace the first `n` of them.
pub(crate) type Pattern = fn(&[Node], &Uses, &Caps) -> Option<(usize, Op)>;

/// The fusions, tried in this order at every node.
const PATTERNS: &[Pattern] = &[embed::pattern, add_rms_norm::pattern, matmul::bias_pattern];

/// Applies the table once, front to back.
pub fn fuse(rec: &Recorder, read_back: &[Tensor], caps: &Caps) -> Vec<Node> {
    let uses = Uses::of(&rec.nodes, read_back);
    let nodes = gathered(&rec.nodes, &uses);
    let (mut out, mut at) = (Vec::with_capacity(nodes.len()), 0);
    while at < nodes.len() {
        let rest = &nodes[at..];
        let found = PATTERNS.iter().find_map(|p| p(rest, &uses, caps));
        let (taken, op) = found.unwrap_or_else(|| (1, rest[0].op.clone()));
        out.push(Node { op, layer: rest[0].layer });
        at += taken;
    }
    out
}

/// The operations without gathers of the only row, which would part what the patterns look for.
fn gathered(nodes: &[Node], uses: &Uses) -> Vec<Node> {
    let (mut out, mut at) = (Vec::with_capacity(nodes.len()), 0);
    while at < nodes.len() {
        let found = gather_rows::pattern(&nodes[at..], uses);
        let taken = 1 + usize::from(found.is_some());
        out.push(Node { op: found.unwrap_or_else(|| nodes[at].op.clone()), layer: nodes[at].layer });
        at += taken;
    }
    out
}
