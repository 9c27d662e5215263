//! The recorder: operations as data, in the order in which a model file appends them.

use crate::graph::operation::{Operation, Work};
use crate::graph::tensor::{Counts, Element, Input, KvState, Lead, Place, Shape, State, StateKind, Tensor, Weight};
use gguf::GgmlType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How the cosines and sines of a rope table are computed from a position; see
/// [`cpu_ref::RopeSpec`].
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
    /// The parameters of its angles.
    pub(crate) fn spec(&self) -> cpu_ref::RopeSpec<'_> {
        let &Self { dim, base, scale, ref factors, magnitude } = self;
        cpu_ref::RopeSpec { dim: dim as usize, base, scale, factors: factors.as_deref(), magnitude }
    }

    /// A table without scaling.
    #[must_use]
    pub fn new(dim: u32, base: f64) -> Self {
        Self { dim, base, scale: 1.0, factors: None, magnitude: 1.0 }
    }

    /// This table with the frequency of every pair divided, in addition to earlier divisors. The
    /// divisor 1e30 leaves a pair unrotated.
    ///
    /// # Panics
    /// When the number of divisors is not the number of pairs.
    #[must_use]
    pub fn divided(&self, divisors: &[f32]) -> Self {
        assert_eq!(divisors.len() as u32, self.dim / 2, "a divisor for each of {} pairs", self.dim / 2);
        let so_far = |i: usize| self.factors.as_ref().map_or(1.0, |f| f[i]);
        let factors = divisors.iter().enumerate().map(|(i, &d)| so_far(i) * f64::from(d)).collect();
        Self { factors: Some(factors), ..self.clone() }
    }
}

/// How a value is made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Input(Input),
    Made,
}

/// A new value among `origins`.
pub(crate) fn new_value(origins: &mut Vec<(Origin, Shape)>, element: Element, shape: Shape) -> Tensor {
    origins.push((Origin::Made, shape));
    Tensor { id: origins.len() as u32 - 1, shape, element, first: 0 }
}

/// A named value that may be read back on request.
#[derive(Clone, Debug)]
pub struct Tap {
    pub name: &'static str,
    pub layer: u32,
    pub tensor: Tensor,
}

/// A pass over the layers of a model.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// From the first layer to the last.
    #[default]
    Forward,
    /// From the last layer to the first.
    Backward,
}

/// The phase and the layer of an operation in a model.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stage {
    pub phase: Phase,
    /// None before and after the layers.
    pub layer: Option<u32>,
}

/// One appended operation, with the phase and the layer of which it is a part.
#[derive(Clone, Debug)]
pub struct Node<O> {
    pub op: O,
    pub stage: Stage,
}

impl Work {
    /// The cost of one run of operations with these counts.
    #[must_use]
    pub fn of<O: Operation>(nodes: &[Node<O>], counts: Counts) -> Self {
        nodes.iter().map(|node| node.op.work(counts)).fold(Self::default(), Self::plus)
    }
}

/// A low-rank addition to a weight W [N, K]: W + scale B A, which is never computed as a matrix.
/// (Hu et al. 2021, arXiv 2106.09685.)
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LowRank {
    /// [r, K], in any weight format.
    pub a: Weight,
    /// [N, r], in any weight format.
    pub b: Weight,
    pub scale: f32,
}

/// Dropout of the rows that low-rank factors read, in training; see
/// [`dropout`](crate::ops::dropout()).
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The probability that an element becomes zero, from 0 to below 1.
    pub rate: f32,
    /// u32 [1, 2]: an input of the step that decides which elements become zero.
    pub key: Tensor,
    /// A number that no other dropout of the recording has.
    pub tensor: u32,
}

/// A recording of operations, usually of type [`Op`](crate::language::Op): append them, then pass
/// it to an executor.
#[derive(Clone, Debug)]
pub struct Recorder<O> {
    pub(crate) capacity: Counts,
    pub(crate) states: Vec<StateKind>,
    pub(crate) nodes: Vec<Node<O>>,
    pub(crate) origins: Vec<(Origin, Shape)>,
    pub(crate) ropes: Vec<RopeTable>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) outputs: Vec<Tensor>,
    adapters: HashMap<Weight, Vec<(LowRank, Option<Dropped>)>>,
    row_adapters: HashMap<Weight, Vec<LowRank>>,
    /// The keys and values appended to every KV state, if they stay with the step.
    values: Option<HashMap<KvState, [Tensor; 2]>>,
    stage: Stage,
}

impl<O> Recorder<O> {
    /// An empty recording of steps with up to `capacity` rows over these states.
    #[must_use]
    pub fn new(capacity: Counts, states: &[StateKind]) -> Self {
        let states = states.to_vec();
        let (nodes, origins, ropes, taps, outputs) = (vec![], vec![], vec![], vec![], vec![]);
        Self {
            capacity,
            states,
            nodes,
            origins,
            ropes,
            taps,
            outputs,
            adapters: HashMap::new(),
            row_adapters: HashMap::new(),
            values: None,
            stage: Stage::default(),
        }
    }

    /// An empty recording of steps that hold whole documents and keep no state: for training and
    /// for encoder towers. [`kv_append`](crate::ops::kv_append()) does not store keys and values.
    /// [`attention`](crate::ops::attention()) reads those of the row's own document, from the step
    /// input `firsts` on, and [`embed`](crate::ops::embed()) reads the step input `ids`. KV and
    /// token states are neither written nor read, so [`States`](crate::States) of one sequence and
    /// one position are enough.
    #[must_use]
    pub fn of_documents(capacity: Counts, states: &[StateKind]) -> Self {
        Self { values: Some(HashMap::new()), ..Self::new(capacity, states) }
    }

    /// Whether ids, keys and values come with the step.
    #[must_use]
    pub fn is_of_documents(&self) -> bool {
        self.values.is_some()
    }

    /// Records what is appended to a state. Returns whether keys and values stay with the step.
    pub(crate) fn keep(&mut self, state: KvState, k: Tensor, v: Tensor) -> bool {
        self.values.as_mut().map(|values| values.insert(state, [k, v])).is_some()
    }

    /// The keys and values last appended to a state, if they stay with the step.
    ///
    /// # Panics
    /// When nothing was appended.
    pub(crate) fn kept(&self, state: KvState) -> Option<[Tensor; 2]> {
        self.values.as_ref().map(|values| *values.get(&state).expect("attention over keys that were appended"))
    }

    /// The capacities of this recording.
    #[must_use]
    pub fn capacity(&self) -> Counts {
        self.capacity
    }

    /// The handle of the state with this index.
    ///
    /// # Panics
    /// When the recorder was not given that many states.
    #[must_use]
    pub fn state(&self, index: usize) -> State {
        assert!(index < self.states.len(), "state {index} of {}", self.states.len());
        State(index as u32)
    }

    /// The kind of a state.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.states[state.0 as usize]
    }

    /// The words of a state as a matrix [rows, cols] of f32, or as a vector of one row. Every
    /// operation that reads weights can read it, with its contents at that time.
    ///
    /// # Panics
    /// When the state does not hold this number of plain words, or when a row is not a multiple of
    /// 16 bytes.
    #[must_use]
    pub fn weight(&self, state: State, rows: u32, cols: u32) -> Weight {
        let words = u64::from(rows) * u64::from(cols);
        assert!(
            matches!(self.kind(state), StateKind::Words(n) if u64::from(n) == words),
            "[{rows}, {cols}] in {:?}",
            self.kind(state)
        );
        assert!(rows == 1 || cols.is_multiple_of(4), "rows of {cols} f32 in a state: they must end on 16 bytes");
        Weight { place: Place::State(state), ty: GgmlType::F32, rows, cols }
    }

    /// Adds `with` to `weight` in the products that follow, in addition to earlier additions.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn adapt(&mut self, weight: Weight, with: LowRank) {
        self.adapt_dropped(weight, with, None);
    }

    /// As [`Recorder::adapt`], with dropout of the rows that the factor A reads.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn adapt_dropped(&mut self, weight: Weight, with: LowRank, dropped: Option<Dropped>) {
        let LowRank { a, b, .. } = with;
        let fits = (a.cols, a.rows, b.rows) == (weight.cols, b.cols, weight.rows);
        assert!(
            fits,
            "[{}, {}] x [{}, {}] added to [{}, {}]",
            b.rows, b.cols, a.rows, a.cols, weight.rows, weight.cols
        );
        self.adapters.entry(weight).or_default().push((with, dropped));
    }

    /// Adds `with` to the rows that are looked up in `table` from here on, in addition to earlier
    /// additions. The factor A is transposed: `with.a` [D, r], `with.b` [V, r] for a table [V, D].
    /// Products with the table stay as they are.
    ///
    /// # Panics
    /// When the shapes do not fit.
    pub fn adapt_rows(&mut self, table: Weight, with: LowRank) {
        let LowRank { a, b, .. } = with;
        let fits = (a.rows, a.cols, b.rows) == (table.cols, b.cols, table.rows);
        assert!(
            fits,
            "[{}, {}] and [{}, {}] added to [{}, {}]",
            b.rows, b.cols, a.rows, a.cols, table.rows, table.cols
        );
        self.row_adapters.entry(table).or_default().push(with);
    }

    /// The low-rank additions to the rows of a table.
    pub(crate) fn added_to_rows(&self, table: Weight) -> Vec<LowRank> {
        self.row_adapters.get(&table).cloned().unwrap_or_default()
    }

    /// The low-rank additions to a weight, with the dropout of the rows that they read.
    pub(crate) fn added_to(&self, weight: Weight) -> Vec<(LowRank, Option<Dropped>)> {
        self.adapters.get(&weight).cloned().unwrap_or_default()
    }

    /// Marks the operations that follow as belonging to a layer, for profiles, plans and submit
    /// cuts.
    pub fn layer(&mut self, layer: Option<u32>) {
        self.stage.layer = layer;
    }

    /// Marks the operations that follow as belonging to a phase, for submit cuts and progress.
    pub fn phase(&mut self, phase: Phase) {
        self.stage.phase = phase;
    }

    fn value(&mut self, origin: Origin, shape: Shape, element: Element) -> Tensor {
        self.origins.push((origin, shape));
        Tensor { id: self.origins.len() as u32 - 1, shape, element, first: 0 }
    }

    /// A value that the host provides for every step. A second call with the same input returns the
    /// same tensor.
    pub fn input(&mut self, input: Input) -> Tensor {
        if let Some(id) = self.origins.iter().position(|(o, _)| *o == Origin::Input(input)) {
            return Tensor { id: id as u32, shape: self.origins[id].1, element: input.element(), first: 0 };
        }
        let (t, out) = (self.capacity.step, self.capacity.out);
        let shape = match input {
            Input::Positions | Input::Ends | Input::Sequences | Input::Ids | Input::Firsts | Input::Numbers => {
                Shape::new(Lead::Step, t, 1)
            }
            Input::Spans => Shape::new(Lead::Step, t, 3),
            Input::OutRows | Input::Targets | Input::LossWeights => Shape::new(Lead::Out, out, 1),
            Input::Rows => Shape::new(Lead::Fixed, 1, 2),
            Input::Rope(n) => Shape::new(Lead::Step, t, self.ropes[n as usize].dim),
            Input::Sampling => Shape::new(Lead::Out, out, crate::graph::sampling::PARAM_WORDS),
            Input::Host(_) => panic!("host inputs have a shape of their own: use host_input"),
        };
        self.value(Origin::Input(input), shape, input.element())
    }

    /// The free input with this number, f32 (or its bits) of any shape: for tests and for single
    /// operations.
    pub fn host_input(&mut self, number: u32, shape: Shape) -> Tensor {
        self.value(Origin::Input(Input::Host(number)), shape, Element::F32)
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

    /// A new f32 value of this shape. The operation that is pushed next writes it.
    pub fn make(&mut self, shape: Shape) -> Tensor {
        self.make_of(Element::F32, shape)
    }

    /// A new value of this element type and shape. The operation that is pushed next writes it.
    pub fn make_of(&mut self, element: Element, shape: Shape) -> Tensor {
        self.value(Origin::Made, shape, element)
    }

    /// Appends an operation. Its dispatcher in [`ops`](crate::ops) checks the shapes first.
    pub fn push(&mut self, op: impl Into<O>) {
        self.nodes.push(Node { op: op.into(), stage: self.stage });
    }

    /// Names a value. This costs nothing unless a plan requests the name.
    pub fn tap(&mut self, name: &'static str, layer: u32, tensor: Tensor) {
        self.taps.push(Tap { name, layer, tensor });
    }

    /// Requests that a value is read back after every run. Returns its index among the outputs.
    pub fn output(&mut self, tensor: Tensor) -> usize {
        self.outputs.push(tensor);
        self.outputs.len() - 1
    }

    /// The names and layers of all taps.
    #[must_use]
    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// The operations, in the order of recording.
    #[must_use]
    pub fn nodes(&self) -> &[Node<O>] {
        &self.nodes
    }

    /// Keeps the first `count` operations only, and the names of values that they make.
    pub fn truncate(&mut self, count: usize)
    where
        O: Operation,
    {
        let dropped: Vec<u32> = self.nodes.drain(count..).flat_map(|n| n.op.io().writes).map(|t| t.id).collect();
        self.taps.retain(|tap| !dropped.contains(&tap.tensor.id));
    }

    /// Passes every operation to `f`, which may change it.
    pub fn each_operation(&mut self, f: impl FnMut(&mut O)) {
        self.nodes.iter_mut().map(|node| &mut node.op).for_each(f);
    }

    /// Drops every operation whose results no operation and no output reads, except operations that
    /// write only states. Taps are dropped.
    pub fn prune(&mut self)
    where
        O: Operation,
    {
        self.taps.clear();
        let mut read: HashSet<u32> = self.outputs.iter().map(|t| t.id).collect();
        let needed = |node: &Node<O>| {
            let io = node.op.io();
            let needed = io.writes.is_empty() || io.writes.iter().any(|t| read.contains(&t.id));
            if needed {
                read.extend(io.reads.iter().map(|t| t.id));
            }
            needed
        };
        let mut keep: Vec<bool> = self.nodes.iter().rev().map(needed).collect();
        self.nodes.retain(|_| keep.pop().unwrap_or(true));
    }

    /// The cost of one run at capacity. `--device auto` is based on it.
    #[must_use]
    pub fn work(&self) -> Work
    where
        O: Operation,
    {
        Work::of(&self.nodes, self.capacity)
    }
}
