//! The recorder: operations in the order a model file appends them, as data.

use crate::ops::{Op, Operation, Work};
use crate::tensor::{Counts, Input, Lead, Shape, State, StateKind, Tensor, Weight};
use std::collections::HashMap;
use std::sync::Arc;

/// How the cosines and sines of one rope table follow from a position; see [`cpu_ref::RopeSpec`].
#[derive(Clone, Debug, PartialEq)]
pub struct RopeTable {
    /// Rotated elements per head.
    pub dim: u32,
    pub base: f64,
    /// Factor on every frequency (linear position scaling); 1 for none.
    pub scale: f64,
    /// Divisors per pair.
    pub factors: Option<Arc<[f64]>>,
    /// Factor on cosines and sines; 1 for none.
    pub magnitude: f64,
}

impl RopeTable {
    /// A table without scaling.
    #[must_use]
    pub fn new(dim: u32, base: f64) -> Self {
        Self { dim, base, scale: 1.0, factors: None, magnitude: 1.0 }
    }

    /// The same with the frequency of every pair divided, once more where it was already; 1e30 leaves a pair unrotated.
    ///
    /// # Panics
    /// When there is not one divisor per pair.
    #[must_use]
    pub fn divided(&self, divisors: &[f32]) -> Self {
        assert_eq!(divisors.len() as u32, self.dim / 2, "a divisor for each of {} pairs", self.dim / 2);
        let so_far = |i: usize| self.factors.as_ref().map_or(1.0, |f| f[i]);
        let factors = divisors.iter().enumerate().map(|(i, &d)| so_far(i) * f64::from(d)).collect();
        Self { factors: Some(factors), ..self.clone() }
    }
}

/// Where a value comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Input(Input),
    Made,
}

/// A named value that somebody may ask for.
#[derive(Clone, Debug)]
pub struct Tap {
    pub name: &'static str,
    pub layer: u32,
    pub tensor: Tensor,
}

/// One appended operation, with the layer it belongs to.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    pub layer: Option<u32>,
}

/// An addition of low rank to a weight W [N, K]: W + scale B A, which is never formed. (Hu et al. 2021, arXiv 2106.09685.)
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LowRank {
    /// [r, K], in any weight format.
    pub a: Weight,
    /// [N, r], in any weight format.
    pub b: Weight,
    pub scale: f32,
}

/// A recording: append operations, then hand it to an executor.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(crate) capacity: Counts,
    pub(crate) states: Vec<StateKind>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) origins: Vec<(Origin, Shape)>,
    pub(crate) ropes: Vec<RopeTable>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) outputs: Vec<Tensor>,
    adapters: HashMap<Weight, Vec<LowRank>>,
    layer: Option<u32>,
}

impl Recorder {
    /// An empty recording of steps with up to `capacity` rows over these states.
    #[must_use]
    pub fn new(capacity: Counts, states: &[StateKind]) -> Self {
        let states = states.to_vec();
        let (nodes, origins, ropes, taps, outputs) = (vec![], vec![], vec![], vec![], vec![]);
        Self { capacity, states, nodes, origins, ropes, taps, outputs, adapters: HashMap::new(), layer: None }
    }

    /// The capacities this recording is made for.
    #[must_use]
    pub fn capacity(&self) -> Counts {
        self.capacity
    }

    /// The handle of the n-th state.
    ///
    /// # Panics
    /// When the recorder was not given that many states.
    #[must_use]
    pub fn state(&self, index: usize) -> State {
        assert!(index < self.states.len(), "state {index} of {}", self.states.len());
        State(index as u32)
    }

    /// What a state holds.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.states[state.0 as usize]
    }

    /// Makes the products with `weight` that follow those with `weight` + `with`, beside what was added to it before.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn adapt(&mut self, weight: Weight, with: LowRank) {
        let LowRank { a, b, .. } = with;
        let fits = (a.cols, a.rows, b.rows) == (weight.cols, b.cols, weight.rows);
        assert!(fits, "[{}, {}] x [{}, {}] added to [{}, {}]", b.rows, b.cols, a.rows, a.cols, weight.rows, weight.cols);
        self.adapters.entry(weight).or_default().push(with);
    }

    /// What was added to a weight.
    pub(crate) fn added_to(&self, weight: Weight) -> Vec<LowRank> {
        self.adapters.get(&weight).cloned().unwrap_or_default()
    }

    /// Marks the operations that follow as belonging to a layer, for profiles, plans and submit cuts.
    pub fn layer(&mut self, layer: Option<u32>) {
        self.layer = layer;
    }

    fn value(&mut self, origin: Origin, shape: Shape) -> Tensor {
        self.origins.push((origin, shape));
        Tensor { id: self.origins.len() as u32 - 1, shape }
    }

    /// A value that the host gives for every step; asking twice gives the same tensor.
    pub fn input(&mut self, input: Input) -> Tensor {
        if let Some(id) = self.origins.iter().position(|(o, _)| *o == Origin::Input(input)) {
            return Tensor { id: id as u32, shape: self.origins[id].1 };
        }
        let (t, out) = (self.capacity.step, self.capacity.out);
        let shape = match input {
            Input::Positions | Input::Ends | Input::Sequences => Shape::new(Lead::Step, t, 1),
            Input::OutRows => Shape::new(Lead::Out, out, 1),
            Input::Rows => Shape::new(Lead::Fixed, 1, 1),
            Input::Rope(n) => Shape::new(Lead::Step, t, self.ropes[n as usize].dim),
            Input::Sampling => Shape::new(Lead::Out, out, crate::sampling::PARAM_WORDS),
            Input::Host(_) => panic!("host inputs have a shape of their own: use host_input"),
        };
        self.value(Origin::Input(input), shape)
    }

    /// The n-th free input, f32 (or bits of it) of any shape: for tests and for use of single operations.
    pub fn host_input(&mut self, number: u32, shape: Shape) -> Tensor {
        self.value(Origin::Input(Input::Host(number)), shape)
    }

    /// The cosine and sine rows [T, dim / 2, 2] of a rope table, computed by the host in f64.
    pub fn rope_rows(&mut self, table: &RopeTable) -> Tensor {
        let known = self.ropes.iter().position(|t| t == table);
        let number = known.unwrap_or_else(|| {
            self.ropes.push(table.clone());
            self.ropes.len() - 1
        });
        self.input(Input::Rope(number as u32))
    }

    /// A new value of this shape, to be written by the operation that is pushed next.
    pub(crate) fn make(&mut self, shape: Shape) -> Tensor {
        self.value(Origin::Made, shape)
    }

    /// Appends an operation.
    pub(crate) fn push(&mut self, op: impl Into<Op>) {
        self.nodes.push(Node { op: op.into(), layer: self.layer });
    }

    /// Names a value; it costs nothing unless a plan is asked for that name.
    pub fn tap(&mut self, name: &'static str, layer: u32, tensor: Tensor) {
        self.taps.push(Tap { name, layer, tensor });
    }

    /// Asks for a value to be read back after every run; returns its number among the outputs.
    pub fn output(&mut self, tensor: Tensor) -> usize {
        self.outputs.push(tensor);
        self.outputs.len() - 1
    }

    /// The names and layers of all taps.
    #[must_use]
    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// What one run at capacity costs; the ground of `--device auto`.
    #[must_use]
    pub fn work(&self) -> Work {
        self.nodes.iter().map(|n| n.op.work(self.capacity)).fold(Work::default(), Work::plus)
    }
}
