//! Shapes and handles: what a recording is made of.

use gguf::GgmlType;

/// What a tensor's leading dimension counts, since plans are made for a capacity and run with less.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lead {
    /// The rows of the step (T).
    Step,
    /// The rows whose logits are asked for.
    Out,
    /// Always its capacity.
    Fixed,
}

/// The row counts of one run, or the capacities of one plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Rows of the step (T).
    pub step: u32,
    /// Rows whose logits are asked for.
    pub out: u32,
}

/// A shape [rows, heads, dim]; a matrix has one head. `rows` is the capacity of a leading dimension that varies.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub lead: Lead,
    pub rows: u32,
    pub heads: u32,
    pub dim: u32,
}

impl Shape {
    /// A matrix [rows, dim].
    #[must_use]
    pub fn new(lead: Lead, rows: u32, dim: u32) -> Self {
        Self { lead, rows, heads: 1, dim }
    }

    /// Elements per row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.heads * self.dim
    }

    /// Elements at capacity.
    #[must_use]
    pub fn elements(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.width())
    }

    /// Rows in a run with these counts.
    #[must_use]
    pub fn rows_at(&self, counts: Counts) -> u32 {
        match self.lead {
            Lead::Step => counts.step,
            Lead::Out => counts.out,
            Lead::Fixed => self.rows,
        }
    }
}

/// The type of a tensor's elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F32,
    /// Ids, positions and other whole numbers, or words of several meanings.
    U32,
    /// Two halves in a word; the shape counts words. The scales of rows are a tensor of their own.
    F16,
    /// 8-bit quants, four in a word, and the scales of their blocks behind them; the shape counts words.
    Q8,
}

/// A value of a recording: made once, read any number of times.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(crate) id: u32,
    pub shape: Shape,
    pub element: Element,
}

impl Tensor {
    /// The number of the value in its recording: two tensors of one number are views of one value.
    #[must_use]
    pub fn id(self) -> u32 {
        self.id
    }

    /// The same values seen as [rows, heads, width / heads].
    ///
    /// # Panics
    /// When `heads` does not divide the row.
    #[must_use]
    pub fn heads(self, heads: u32) -> Self {
        let width = self.shape.width();
        assert!(heads > 0 && width.is_multiple_of(heads), "{heads} heads do not divide a row of {width}");
        Self { shape: Shape { heads, dim: width / heads, ..self.shape }, ..self }
    }

    /// The same values seen as [rows, width].
    #[must_use]
    pub fn flat(self) -> Self {
        self.heads(1)
    }
}

/// Where the elements of a weight are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Among the [`Weights`](crate::Weights), by their order.
    Loaded(u32),
    /// In a state, which other operations may write.
    State(State),
}

/// A matrix [rows, cols] of a model, in the type its file has; a vector has one row. [`Recorder::weight`](crate::graph::record::Recorder::weight)
/// makes one of a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weight {
    pub(crate) place: Place,
    pub ty: GgmlType,
    pub rows: u32,
    pub cols: u32,
}

impl Weight {
    /// The n-th of the [`Weights`](crate::Weights).
    pub(crate) fn loaded(n: u32, ty: GgmlType, rows: u32, cols: u32) -> Self {
        Self { place: Place::Loaded(n), ty, rows, cols }
    }
}

/// A piece of state that outlives a step, by its place in the list that the recorder was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct State(pub(crate) u32);

/// What a state holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// Rows of keys or values, `width` elements each. A `ring` of n holds the last n positions, p in row p mod n; without one all
    /// positions are held.
    Kv { ty: cpu_ref::KvType, width: u32, ring: Option<u32> },
    /// One id per position: what was said and what was sampled.
    Tokens,
    /// So many words of 32 bits, of no sequence and no position: what a training step changes. Each is a row of one word.
    Words(u32),
}

impl StateKind {
    /// Rows of keys or values for all positions.
    #[must_use]
    pub const fn kv(ty: cpu_ref::KvType, width: u32) -> Self {
        Self::Kv { ty, width, ring: None }
    }

    /// Rows per sequence in states of so many positions.
    #[must_use]
    pub fn rows(&self, positions: u32) -> u32 {
        match *self {
            Self::Kv { ring: Some(ring), .. } => ring.min(positions),
            Self::Kv { ring: None, .. } | Self::Tokens => positions,
            Self::Words(words) => words,
        }
    }

    /// Sequences that are held apart, of so many.
    #[must_use]
    pub fn sequences(&self, sequences: u32) -> u32 {
        if matches!(self, Self::Words(_)) { 1 } else { sequences }
    }

    /// The type and the number of a row's elements.
    #[must_use]
    pub fn row(&self) -> (cpu_ref::KvType, u32) {
        match *self {
            Self::Kv { ty, width, .. } => (ty, width),
            Self::Tokens | Self::Words(_) => (cpu_ref::KvType::F32, 1),
        }
    }

    /// Bytes per row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        match *self {
            Self::Kv { ty, width, .. } => ty.row_bytes(width as usize),
            Self::Tokens | Self::Words(_) => 4,
        }
    }
}

/// A value that the host gives anew for every step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// u32 \[T\]: the position of each row in its sequence.
    Positions,
    /// u32 \[T\]: the first position that each row does not see, or the first row of the step where keys are values; only for bidirectional attention.
    Ends,
    /// u32 \[T\]: the sequence slot of each row.
    Sequences,
    /// u32 \[T\]: the id of each row; only where ids are given with the step.
    Ids,
    /// u32 \[T\]: the first row of each row's document; only where keys are values.
    Firsts,
    /// u32 \[T\]: 0, 1, 2 and so on.
    Numbers,
    /// u32 \[Out\]: which rows get logits.
    OutRows,
    /// u32 \[1\]: how many rows the step has (T).
    Rows,
    /// f32 [T, dim / 2, 2]: cosine and sine of the n-th rope table.
    Rope(u32),
    /// u32 [Out, 12]: a [`crate::graph::sampling::SampleParams`] per row.
    Sampling,
    /// f32 of any shape: test and library input by number.
    Host(u32),
}

impl Input {
    /// The type of its elements.
    #[must_use]
    pub fn element(self) -> Element {
        match self {
            Self::Positions | Self::Ends | Self::Sequences | Self::Ids | Self::Firsts | Self::Numbers => Element::U32,
            Self::OutRows | Self::Rows | Self::Sampling => Element::U32,
            Self::Rope(_) | Self::Host(_) => Element::F32,
        }
    }
}

/// A layer's place in the KV state; made anew by every append, so that the order of writes and reads is data.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct KvState {
    pub k: State,
    pub v: State,
    pub version: u32,
}

impl KvState {
    /// The state before its first append in a recording.
    #[must_use]
    pub fn new(k: State, v: State) -> Self {
        Self { k, v, version: 0 }
    }
}
