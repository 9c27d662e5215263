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

/// A value of a recording: made once, read any number of times. Elements are 32 bits wide.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(crate) id: u32,
    pub shape: Shape,
}

impl Tensor {
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

/// A matrix [rows, cols] of a model, in the type its file has; a vector has one row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weight {
    pub(crate) id: u32,
    pub ty: GgmlType,
    pub rows: u32,
    pub cols: u32,
}

/// A piece of state that outlives a step, by its place in the list that the recorder was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct State(pub(crate) u32);

/// What a state holds, per sequence and position.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// Rows of keys or values, `width` elements each. A `ring` of n holds the last n positions, p in row p mod n; without one all
    /// positions are held.
    Kv { ty: cpu_ref::KvType, width: u32, ring: Option<u32> },
    /// One id per position: what was said and what was sampled.
    Tokens,
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
            _ => positions,
        }
    }

    /// Bytes per row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        match *self {
            Self::Kv { ty, width, .. } => ty.row_bytes(width as usize),
            Self::Tokens => 4,
        }
    }
}

/// A value that the host gives anew for every step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// u32 \[T\]: the position of each row in its sequence.
    Positions,
    /// u32 \[T\]: the first position that each row does not see; only for bidirectional attention.
    Ends,
    /// u32 \[T\]: the sequence slot of each row.
    Sequences,
    /// u32 \[Out\]: which rows get logits.
    OutRows,
    /// u32 \[1\]: how many rows the step has (T).
    Rows,
    /// f32 [T, dim / 2, 2]: cosine and sine of the n-th rope table.
    Rope(u32),
    /// u32 [Out, 12]: a [`crate::sampling::SampleParams`] per row.
    Sampling,
    /// f32 of any shape: test and library input by number.
    Host(u32),
}

/// A layer's place in the KV state; made anew by every append, so that the order of writes and reads is data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
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
