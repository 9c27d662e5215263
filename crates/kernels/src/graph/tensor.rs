//! Shapes and handles, of which a recording is made.

use gguf::GgmlType;

/// What the leading dimension of a tensor counts. Plans are made for a capacity and run with fewer
/// rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lead {
    /// The rows of the step (T).
    Step,
    /// The rows whose logits are requested.
    Out,
    /// The rows whose logits are requested, from this one on, up to the capacity.
    OutFrom(u32),
    /// Fixed: always the capacity.
    Fixed,
}

/// The row counts of one run, or the capacities of one plan.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Rows of the step (T).
    pub step: u32,
    /// Rows whose logits are requested.
    pub out: u32,
}

/// A shape [rows, heads, dim]; a matrix has one head. If the leading dimension varies, `rows` is
/// its capacity.
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
            Lead::OutFrom(first) => counts.out.saturating_sub(first).min(self.rows),
            Lead::Fixed => self.rows,
        }
    }
}

/// The type of a tensor's elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F32,
    /// Ids, positions and other whole numbers, or words of mixed meaning.
    U32,
    /// Two f16 values per word. The shape counts words. The scales of the rows are a separate
    /// tensor.
    F16,
    /// 8-bit quants, four per word, then the scales of their blocks. The shape counts words.
    Q8,
}

/// A value of a recording: made once, read any number of times.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(crate) id: u32,
    pub shape: Shape,
    pub element: Element,
    /// The row of the value with which this tensor begins; see [`Tensor::rows_from`].
    pub(crate) first: u32,
}

impl Tensor {
    /// Rows at which a part of a tensor may begin are a multiple of this number: so each part
    /// begins at a multiple of 256 bytes, as WebGPU asks of bindings.
    pub const PART_ROWS: u32 = 64;

    /// The number of the value in its recording. Two tensors with the same number are views of one
    /// value.
    #[must_use]
    pub fn id(self) -> u32 {
        self.id
    }

    /// A view of the same values as [rows, heads, width / heads].
    ///
    /// # Panics
    /// When `heads` does not divide the row.
    #[must_use]
    pub fn heads(self, heads: u32) -> Self {
        let width = self.shape.width();
        assert!(heads > 0 && width.is_multiple_of(heads), "{heads} heads do not divide a row of {width}");
        Self { shape: Shape { heads, dim: width / heads, ..self.shape }, ..self }
    }

    /// A view of the rows from `first` on, `rows` at most, of a tensor of requested rows.
    ///
    /// # Panics
    /// When the tensor is not of requested rows, or `first` is no multiple of
    /// [`Tensor::PART_ROWS`].
    #[must_use]
    pub fn rows_from(self, first: u32, rows: u32) -> Self {
        assert!(
            self.shape.lead == Lead::Out && first.is_multiple_of(Self::PART_ROWS) && first < self.shape.rows,
            "rows from {first} of {:?}",
            self.shape
        );
        let rows = rows.min(self.shape.rows - first);
        Self { shape: Shape { lead: Lead::OutFrom(first), rows, ..self.shape }, first, ..self }
    }

    /// Bytes of the value before the first row of this tensor.
    pub(crate) fn offset_bytes(self) -> u64 {
        4 * u64::from(self.first) * u64::from(self.shape.width())
    }

    /// A view of the same values as [rows, width].
    #[must_use]
    pub fn flat(self) -> Self {
        self.heads(1)
    }
}

/// Where the elements of a weight are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// In the [`Weights`](crate::Weights), by index.
    Loaded(u32),
    /// In a state, which other operations may write.
    State(State),
}

/// A matrix [rows, cols] of a model, in the type of its file; a vector has one row.
/// [`Recorder::weight`](crate::graph::record::Recorder::weight) makes a weight from a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weight {
    pub(crate) place: Place,
    pub ty: GgmlType,
    pub rows: u32,
    pub cols: u32,
}

impl Weight {
    /// The weight with index `n` in the [`Weights`](crate::Weights).
    pub(crate) fn loaded(n: u32, ty: GgmlType, rows: u32, cols: u32) -> Self {
        Self { place: Place::Loaded(n), ty, rows, cols }
    }
}

/// A state, which outlives a step: its index in the list that the recorder was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct State(pub(crate) u32);

/// The contents of a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// Rows of keys or values of `width` elements each. A `ring` of n holds the last n positions,
    /// position p in row p mod n. Without a ring, all positions are held.
    Kv { ty: cpu_ref::KvType, width: u32, ring: Option<u32> },
    /// One id per position: the prompt and the sampled ids.
    Tokens,
    /// This number of 32-bit words, independent of sequences and positions. A training step changes
    /// them. Each word is a row.
    Words(u32),
}

impl StateKind {
    /// Rows of keys or values for all positions.
    #[must_use]
    pub const fn kv(ty: cpu_ref::KvType, width: u32) -> Self {
        Self::Kv { ty, width, ring: None }
    }

    /// Rows per sequence in states of `positions` positions.
    #[must_use]
    pub fn rows(&self, positions: u32) -> u32 {
        match *self {
            Self::Kv { ring: Some(ring), .. } => ring.min(positions),
            Self::Kv { ring: None, .. } | Self::Tokens => positions,
            Self::Words(words) => words,
        }
    }

    /// Number of sequences that the state keeps apart, of `sequences`.
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

/// A value that the host provides for every step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// u32 \[T\]: the position of each row in its sequence.
    Positions,
    /// u32 \[T\]: the first position that each row does not see, or the first row of the step in
    /// recordings of documents; only for bidirectional attention.
    Ends,
    /// u32 \[T\]: the sequence slot of each row.
    Sequences,
    /// u32 \[T\]: the id of each row; only in recordings of documents.
    Ids,
    /// u32 \[T\]: the first row of each row's document; only in recordings of documents.
    Firsts,
    /// u32 [T, 3]: the first row of each row's document, the row after its last, and the first row
    /// that the row does not see if attention is bidirectional; only in recordings of documents.
    Spans,
    /// u32 \[T\]: 0, 1, 2 and so on.
    Numbers,
    /// u32 \[Out\]: the rows that get logits.
    OutRows,
    /// u32 \[2\]: number of rows of the step (T), and of rows that get logits (Out).
    Rows,
    /// u32 \[Out\]: the id that each row should predict. A row whose id is not in the vocabulary
    /// has no loss.
    Targets,
    /// f32 \[Out\]: the factor on the loss of each row.
    LossWeights,
    /// f32 [T, dim / 2, 2]: cosines and sines of the rope table with this index.
    Rope(u32),
    /// u32 [Out, 12]: a [`crate::graph::sampling::SampleParams`] per row.
    Sampling,
    /// f32 of any shape: a free input by number, for tests and for library users.
    Host(u32),
}

impl Input {
    /// The type of the elements.
    #[must_use]
    pub fn element(self) -> Element {
        match self {
            Self::Positions | Self::Ends | Self::Sequences | Self::Ids | Self::Firsts | Self::Spans | Self::Numbers => {
                Element::U32
            }
            Self::OutRows | Self::Rows | Self::Targets | Self::Sampling => Element::U32,
            Self::LossWeights | Self::Rope(_) | Self::Host(_) => Element::F32,
        }
    }
}

/// The states of the keys and of the values of a layer. Every append returns a new one, so that the
/// order of writes and reads is part of the data.
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

/// How a kernel that sums over rows counts them: the number in `step_rows`, and the first row.
pub(crate) fn counted(shape: Shape) -> (u32, u32) {
    match shape.lead {
        Lead::Step => (0, 0),
        Lead::Out => (1, 0),
        Lead::OutFrom(first) => (1, first),
        Lead::Fixed => panic!("a sum over the rows of {shape:?}, which no step counts"),
    }
}
