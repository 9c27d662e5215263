//! The information about neighbouring operations that rules may use.

use crate::caps::Caps;
use crate::graph::operation::Operation;
use crate::graph::tensor::{State, StateKind, Tensor};
use crate::language::{Lowered, Node};
use std::collections::HashMap;

/// How often each value is read, including read-backs. A value with other consumers ends a fusion.
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

    /// Whether exactly one operation reads this value and it is not read back.
    pub(crate) fn once(&self, t: Tensor) -> bool {
        self.0.get(&t.id) == Some(&1)
    }

    /// Whether no operation reads this value and it is not read back.
    pub(crate) fn never(&self, t: Tensor) -> bool {
        !self.0.contains_key(&t.id)
    }
}

/// An operation that does the work of its consumer and of the producers of some values.
pub(crate) struct Merged {
    pub op: Lowered,
    /// The values that are no longer made.
    pub of: Vec<Tensor>,
    /// Whether it takes the place of its only producer, whose other results are read before this
    /// operation.
    pub early: bool,
}

/// The information about earlier operations that a rule may use.
pub(crate) struct Producers<'a> {
    pub(super) nodes: &'a [Option<Node>],
    pub(super) producers: &'a HashMap<u32, usize>,
    pub(super) uses: &'a Uses,
    pub(super) at: usize,
    pub(super) states: &'a [StateKind],
    pub caps: &'a Caps,
}

impl Producers<'_> {
    /// The operation that made this value, if the value has no other reader.
    pub fn alone(&self, t: Tensor) -> Option<&Lowered> {
        let made = self.producers.get(&t.id).filter(|_| self.uses.once(t))?;
        self.nodes[*made].as_ref().map(|node| &node.op)
    }

    /// Whether this value has no reader.
    pub fn unread(&self, t: Tensor) -> bool {
        self.uses.never(t)
    }

    /// The operation that made this value, whatever else reads it.
    pub fn of(&self, t: Tensor) -> Option<&Lowered> {
        self.nodes[*self.producers.get(&t.id)?].as_ref().map(|node| &node.op)
    }

    /// The kind of a state.
    pub fn kind(&self, state: State) -> StateKind {
        self.states[state.0 as usize]
    }

    /// The last operation before this one for which `wanted` is true.
    pub fn latest(&self, wanted: impl Fn(&Lowered) -> bool) -> Option<&Lowered> {
        self.nodes[..self.at].iter().rev().flatten().map(|node| &node.op).find(|op| wanted(op))
    }

    /// Whether an operation before this one reads a value.
    pub fn read_since(&self, t: Tensor) -> bool {
        self.nodes[..self.at].iter().flatten().any(|node| node.op.io().reads.iter().any(|read| read.id == t.id))
    }
}
