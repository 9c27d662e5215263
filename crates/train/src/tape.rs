//! The reverse walk: appends to a recording the derivative of a loss by its values.

use crate::error::Error;
use crate::vjp;
use kernels::ops::{self, Op};
use kernels::{Node, Operation as _, Recorder, State, Tensor, Weight};
use std::collections::{HashMap, HashSet};

/// The derivatives that are known so far, by the values of a recording.
pub struct Tape<'a> {
    pub rec: &'a mut Recorder,
    /// The states that collect the gradients of trained weights.
    trained: &'a HashMap<Weight, State>,
    /// The values from which the loss reaches a trained weight or a value that is asked for.
    wanted: HashSet<u32>,
    /// The derivative by each value, summed over its readers in the reverse of their order.
    known: HashMap<u32, Tensor>,
}

impl<'a> Tape<'a> {
    /// A tape over `nodes` of a recording, which ask for the gradients of `trained` weights and of
    /// `values`.
    pub fn new(rec: &'a mut Recorder, nodes: &[Node<Op>], trained: &'a HashMap<Weight, State>, values: &[Tensor]) -> Self {
        let mut wanted: HashSet<u32> = values.iter().map(|t| t.id()).collect();
        for Node { op, .. } in nodes {
            let io = op.io();
            let reached = op.weights().iter().any(|w| trained.contains_key(w)) || io.reads.iter().any(|t| wanted.contains(&t.id()));
            if reached {
                wanted.extend(io.writes.iter().map(|t| t.id()));
            }
        }
        Self { rec, trained, wanted, known: HashMap::new() }
    }

    /// Whether a derivative by this value is needed.
    pub fn wants(&self, t: Tensor) -> bool {
        self.wanted.contains(&t.id())
    }

    /// The state that collects the gradient of a weight, if it is trained.
    pub fn gradient_of(&self, w: Weight) -> Option<State> {
        self.trained.get(&w).copied()
    }

    /// The derivative by a value so far, in the shape of `t`.
    pub fn of(&self, t: Tensor) -> Option<Tensor> {
        self.known.get(&t.id()).map(|known| known.heads(t.shape.heads))
    }

    /// Adds a contribution to the derivative by `t`. It is not recorded if nobody needs it.
    pub fn add(&mut self, t: Tensor, contribution: impl FnOnce(&mut Recorder) -> Tensor) {
        if !self.wants(t) {
            return;
        }
        let new = contribution(self.rec).flat();
        let sum = match self.known.get(&t.id()) {
            Some(&known) => ops::add(self.rec, known, new),
            None => new,
        };
        self.known.insert(t.id(), sum);
    }

    /// Walks these operations in reverse, and appends their derivatives.
    ///
    /// # Errors
    /// [`Error::NotDifferentiable`] for a discrete operation on a path that is needed.
    pub fn walk(&mut self, nodes: &[Node<Op>]) -> Result<(), Error> {
        for Node { op, layer } in nodes.iter().rev() {
            let writes = op.io().writes;
            if writes.iter().any(|t| self.known.contains_key(&t.id()) && self.wants(*t)) {
                self.rec.layer(*layer);
                vjp::append(self, op)?;
            }
        }
        Ok(())
    }

    /// Renames values: their derivatives belong to the values that replace them.
    pub fn rename(&mut self, map: &HashMap<u32, Tensor>) {
        for (old, new) in map {
            if let Some(known) = self.known.remove(old) {
                self.known.insert(new.id(), known);
            }
            if self.wanted.contains(old) {
                self.wanted.insert(new.id());
            }
        }
    }
}
