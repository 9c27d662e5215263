//! The derivatives of a loss by the values of a recording, while it is walked in reverse.

use kernels::ops::backward::join_columns;
use kernels::ops::{self, Op};
use kernels::{Node, Operation as _, Recorder, State, Tensor, Weight};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The derivatives that are known so far, by the values of a recording.
pub struct Tape<'a> {
    pub rec: &'a mut Recorder,
    /// The states that collect the gradients of trained weights.
    trained: &'a HashMap<Weight, State>,
    /// The values from which the loss reaches a trained weight or a value that is asked for.
    wanted: HashSet<u32>,
    /// The derivative by each value, summed over its readers in the reverse of their order.
    known: HashMap<u32, Tensor>,
    /// Derivatives by columns of a value that several operations read in parts, by first column.
    columns: HashMap<u32, BTreeMap<u32, Tensor>>,
    /// The values that replaced others.
    renamed: HashMap<u32, Tensor>,
    /// The layer whose operations are walked.
    pub layer: Option<u32>,
}

impl<'a> Tape<'a> {
    /// A tape over `nodes` of a recording, which ask for the gradients of `trained` weights and of
    /// `values`.
    pub fn new(
        rec: &'a mut Recorder,
        nodes: &[Node<Op>],
        trained: &'a HashMap<Weight, State>,
        values: &[Tensor],
    ) -> Self {
        let mut wanted: HashSet<u32> = values.iter().map(|t| t.id()).collect();
        for Node { op, .. } in nodes {
            let io = op.io();
            let reached = op.weights().iter().any(|w| trained.contains_key(w))
                || io.reads.iter().any(|t| wanted.contains(&t.id()));
            if reached {
                wanted.extend(io.writes.iter().map(|t| t.id()));
            }
        }
        Self {
            rec,
            trained,
            wanted,
            known: HashMap::new(),
            columns: HashMap::new(),
            renamed: HashMap::new(),
            layer: None,
        }
    }

    /// Whether a derivative by this value is needed.
    pub fn wants(&self, t: Tensor) -> bool {
        self.wanted.contains(&t.id())
    }

    /// The state that collects the gradient of a weight, if it is trained.
    pub fn gradient_of(&self, w: Weight) -> Option<State> {
        self.trained.get(&w).copied()
    }

    /// Adds a contribution to the derivative by the columns of `t` from `start` on.
    pub fn add_columns(&mut self, t: Tensor, start: u32, contribution: Tensor) {
        if contribution.shape.width() == t.shape.width() {
            self.add(t, |_| contribution);
        } else if self.wants(t) {
            let parts = self.columns.entry(t.id()).or_default();
            let sum = match parts.get(&start) {
                Some(&known) => ops::add(self.rec, known, contribution.flat()),
                None => contribution.flat(),
            };
            parts.insert(start, sum);
        }
    }

    /// The derivative by a value so far, in the shape of `t`.
    ///
    /// # Panics
    /// When some of its columns are never read, or are read in parts that overlap. No model does
    /// that.
    pub fn of(&mut self, t: Tensor) -> Option<Tensor> {
        let t = self.renamed.get(&t.id()).map_or(t, |new| new.heads(t.shape.heads));
        if let Some(parts) = self.columns.remove(&t.id()) {
            let mut next = 0;
            for (&start, part) in &parts {
                assert_eq!(start, next, "columns of a value of {}", t.shape.width());
                next += part.shape.width();
            }
            assert_eq!(next, t.shape.width(), "columns that nobody reads");
            let joined = join_columns(self.rec, parts.into_values().collect());
            self.add(t, |_| joined);
        }
        self.known.get(&t.id()).map(|known| known.heads(t.shape.heads))
    }

    /// Adds a contribution to the derivative by `t`. It is not recorded if no derivative by `t` is
    /// wanted.
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

    /// Names a value of the layer that is walked, so that it can be captured.
    pub fn tap(&mut self, name: &'static str, t: Tensor) {
        self.rec.tap(name, self.layer.unwrap_or(0), t);
    }

    /// Whether some derivative by a value is known, and needed.
    pub fn reached(&self, t: Tensor) -> bool {
        (self.known.contains_key(&t.id()) || self.columns.contains_key(&t.id())) && self.wants(t)
    }

    /// Renames values: their derivatives belong to the values that replace them.
    pub fn rename(&mut self, map: &HashMap<u32, Tensor>) {
        for (old, new) in map {
            self.renamed.insert(*old, *new);
            if let Some(known) = self.known.remove(old) {
                self.known.insert(new.id(), known);
            }
            if let Some(columns) = self.columns.remove(old) {
                self.columns.insert(new.id(), columns);
            }
            if self.wanted.contains(old) {
                self.wanted.insert(new.id());
            }
        }
    }
}
