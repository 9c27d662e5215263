//! The values that the oracle of an operation reads and writes.

use crate::graph::input::is_deep;
use crate::graph::tensor::{Counts, Element, Lead, State, StateKind, Tensor, Weight};
use crate::platform::{in_one_turn, in_parallel, in_turns, part, threads};
use gguf::{GgmlType, MaybeSend, MaybeSync};
use half::f16;
use std::collections::HashMap;

/// The weights and states that oracles read, independent of where they are kept.
pub trait Store: MaybeSend + MaybeSync {
    /// A vector weight.
    fn vector(&self, weight: Weight) -> &[f32];
    /// A matrix weight.
    fn matrix(&self, weight: Weight) -> cpu_ref::Rows<'_>;
    /// The kind of a state.
    fn kind(&self, state: State) -> StateKind;
    /// Rows per sequence of a state.
    fn rows(&self, state: State) -> u32;
    /// The bytes of a state.
    fn state(&self, state: State) -> &[u8];
    /// The bytes of a state, to write.
    fn state_mut(&mut self, state: State) -> &mut [u8];
}

/// The values, weights and states of an operation that runs on the CPU.
pub struct Host<'a> {
    counts: Counts,
    store: &'a mut dyn Store,
    values: Vec<Vec<u32>>,
    /// For values in 8 bits, the number of elements that an f32 error can move to a neighbour.
    near: HashMap<u32, usize>,
    /// The positions and the sequences of the whole step, if only some of its rows are computed.
    step: Option<[Vec<u32>; 2]>,
}

impl<'a> Host<'a> {
    /// A host for `values` values, none of which is set yet.
    pub(crate) fn new(counts: Counts, store: &'a mut dyn Store, values: usize) -> Self {
        Self { counts, store, values: vec![vec![]; values], near: HashMap::new(), step: None }
    }

    /// The words of a value.
    pub(crate) fn words(&mut self, id: u32) -> &mut Vec<u32> {
        &mut self.values[id as usize]
    }

    /// Notes how many elements of a rounded tensor are close to half way between two quants.
    pub(crate) fn count_near(&mut self, t: Tensor, elements: usize) {
        self.near.insert(t.id, elements);
    }

    /// The number that was noted for a tensor.
    pub(crate) fn near(&self, t: Tensor) -> usize {
        self.near.get(&t.id).copied().unwrap_or(0)
    }

    /// Notes the positions and the sequences of the step whose rows are computed, or some of them.
    pub(crate) fn judge(&mut self, positions: &[u32], sequences: &[u32]) {
        self.step = Some([positions.to_vec(), sequences.to_vec()]);
    }

    /// Whether several rows of the step are of one sequence, and all rows are at or after `from`.
    pub(crate) fn is_deep(&self, from: u32, positions: Tensor, sequences: Tensor) -> bool {
        match &self.step {
            Some([positions, sequences]) => is_deep(from, positions, sequences),
            None => is_deep(from, self.u32(positions), self.u32(sequences)),
        }
    }

    /// The row counts of this run.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Rows per sequence of a state.
    #[must_use]
    pub fn capacity(&self, state: State) -> u32 {
        self.store.rows(state)
    }

    /// A tensor's elements.
    ///
    /// # Panics
    /// When the elements are not f32.
    #[must_use]
    pub fn f32(&self, t: Tensor) -> &[f32] {
        assert_eq!(t.element, Element::F32, "value {} read as f32", t.id);
        bytemuck::cast_slice(self.u32(t))
    }

    /// A tensor's elements as words, whatever their type.
    #[must_use]
    pub fn u32(&self, t: Tensor) -> &[u32] {
        let words = &self.values[t.id as usize];
        match t.shape.lead {
            // Perhaps a part of the value.
            Lead::OutFrom(_) => {
                let width = t.shape.width() as usize;
                let start = words.len().min(t.first as usize * width);
                &words[start..words.len().min(start + t.shape.rows_at(self.counts) as usize * width)]
            }
            Lead::Step | Lead::Out | Lead::Fixed => words,
        }
    }

    /// A vector for a tensor that is about to be made.
    #[must_use]
    pub fn take(&self, t: Tensor) -> Vec<f32> {
        vec![0.0; t.shape.rows_at(self.counts) as usize * t.shape.width() as usize]
    }

    /// Stores a tensor of f32.
    ///
    /// # Panics
    /// When the tensor is of another type.
    pub fn put(&mut self, t: Tensor, values: Vec<f32>) {
        assert_eq!(t.element, Element::F32, "value {} made as f32", t.id);
        self.values[t.id as usize] = bytemuck::cast_vec(values);
    }

    /// Stores a tensor of words.
    ///
    /// # Panics
    /// When the tensor is of f32.
    pub fn put_u32(&mut self, t: Tensor, values: Vec<u32>) {
        assert_ne!(t.element, Element::F32, "value {} made as words", t.id);
        self.values[t.id as usize] = values;
    }

    /// A vector weight.
    #[must_use]
    pub fn vector(&self, w: Weight) -> &[f32] {
        self.store.vector(w)
    }

    /// A matrix weight.
    #[must_use]
    pub fn matrix(&self, w: Weight) -> cpu_ref::Rows<'_> {
        self.store.matrix(w)
    }

    /// The bytes of a state.
    #[must_use]
    pub fn state(&self, state: State) -> &[u8] {
        self.store.state(state)
    }

    /// The bytes of a state, to write.
    pub fn state_mut(&mut self, state: State) -> &mut [u8] {
        self.store.state_mut(state)
    }

    /// The words of a state, as f32.
    #[must_use]
    pub fn state_f32(&self, state: State) -> Vec<f32> {
        bytemuck::pod_collect_to_vec(self.state(state))
    }

    /// Replaces the words of a state.
    pub fn put_state(&mut self, state: State, words: &[f32]) {
        self.state_mut(state).copy_from_slice(bytemuck::cast_slice(words));
    }

    /// The kind of a state.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.store.kind(state)
    }

    /// The row of a state that holds this position of the sequence.
    #[must_use]
    pub fn slot(&self, state: State, sequence: u32, position: u32) -> usize {
        let rows = self.store.rows(state) as usize;
        sequence as usize * rows + position as usize % rows
    }

    /// The id at this position of the sequence.
    #[must_use]
    pub fn token(&self, state: State, sequence: u32, position: u32) -> u32 {
        let at = 4 * self.slot(state, sequence, position);
        let bytes = &self.state(state)[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// Makes `y` from `x` in chunks of whole rows, in parallel; `f` gets the rows of both.
    pub fn by_rows(&mut self, x: Tensor, y: Tensor, f: impl Fn(&Self, &[f32], &mut [f32]) + Sync) {
        let f = &f;
        in_one_turn(self.by_rows_in_turns(x, y, move |host, _, x, y| f(host, x, y)));
    }

    /// As [`Host::by_rows`], with turns for other work of the thread in between. `f` also gets the
    /// number of the first row.
    pub(crate) async fn by_rows_in_turns(
        &mut self,
        x: Tensor,
        y: Tensor,
        f: impl Fn(&Self, usize, &[f32], &mut [f32]) + Send + Sync,
    ) {
        let mut out = self.take(y);
        let (from, to) = (x.shape.width() as usize, y.shape.width() as usize);
        let per_chunk = part(y.shape.rows_at(self.counts) as usize, 1, FUNCTION * from.max(to));
        let (this, source) = (&*self, self.f32(x));
        let compute = |n: usize, out: &mut [f32]| {
            let (first, rows) = (n * per_chunk, out.len() / to);
            f(this, first, &source[first * from..][..rows * from], out);
        };
        in_turns(&mut out, per_chunk * to, compute).await;
        self.put(y, out);
    }

    /// y [T, N] = x [T, K] w^T, in parallel over the rows of the weight.
    pub async fn matmul(&self, w: Weight, x: &[f32], y: &mut [f32]) {
        product(self.matrix(w), w.rows as usize, x, y).await;
    }

    /// y [T, N] = x [T, K] w^T, with every element of the weight rounded to f16.
    pub fn matmul_f16(&self, w: Weight, x: &[f32], y: &mut [f32]) {
        let rounded = self.rounded(w);
        in_one_turn(product(f32_rows(&rounded, w), w.rows as usize, x, y));
    }

    /// dx [T, K] = dy [T, N] w, in parallel over the rows of dy.
    pub async fn matmul_input(&self, w: Weight, dy: &[f32], dx: &mut [f32]) {
        input(&self.matrix(w), w, dy, dx).await;
    }

    /// dx [T, K] = dy [T, N] w, with every element of the weight rounded to f16.
    pub fn matmul_input_f16(&self, w: Weight, dy: &[f32], dx: &mut [f32]) {
        let rounded = self.rounded(w);
        in_one_turn(input(&f32_rows(&rounded, w), w, dy, dx));
    }

    /// The elements of a weight, rounded to f16.
    pub(crate) fn rounded(&self, w: Weight) -> Vec<f32> {
        let (exact, k) = (self.matrix(w), w.cols as usize);
        let mut rounded = vec![0.0_f32; w.rows as usize * k];
        let per_chunk = (w.rows as usize).div_ceil(4 * threads()).max(1);
        in_parallel(&mut rounded, per_chunk * k, |c, part| {
            for (n, row) in part.chunks_exact_mut(k).enumerate() {
                exact.dequantize_row(c * per_chunk + n, row);
                row.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32());
            }
        });
        rounded
    }
}

/// The multiplications that the time of a function such as exp is worth.
pub(crate) const FUNCTION: usize = 16;

async fn product(w: cpu_ref::Rows<'_>, n: usize, x: &[f32], y: &mut [f32]) {
    let rows = x.len() / w.cols;
    if rows == 0 {
        return; // a step that asks for no logits
    }
    let per_chunk = part(n, 4, rows * w.cols);
    // Each chunk computes one block of columns of y. Rows of y are strided, so the blocks are
    // computed separately and then copied into place.
    let mut blocks = vec![0.0; rows * n];
    let compute = |c: usize, block: &mut [f32]| {
        let (first, count) = (c * per_chunk, block.len() / rows);
        cpu_ref::matmul(&w.slice(first..first + count), x, block);
    };
    in_turns(&mut blocks, rows * per_chunk, compute).await;
    for (c, block) in blocks.chunks(rows * per_chunk).enumerate() {
        let count = block.len() / rows;
        for (t, part) in block.chunks_exact(count).enumerate() {
            y[t * n + c * per_chunk..][..count].copy_from_slice(part);
        }
    }
}

/// The elements of a weight as rows.
pub(crate) fn f32_rows(values: &[f32], w: Weight) -> cpu_ref::Rows<'_> {
    cpu_ref::Rows::new(GgmlType::F32, w.cols as usize, bytemuck::cast_slice(values))
}

async fn input(rows: &cpu_ref::Rows<'_>, w: Weight, dy: &[f32], dx: &mut [f32]) {
    let (n, k) = (w.rows as usize, w.cols as usize);
    // In a browser all rows of dy are one part, so that each row of the weight is dequantized once.
    let per_chunk = part(dx.len() / k, 1, 0);
    // Rows of the weight that are added in one turn: rows of dy may meet a whole vocabulary.
    let block = part(n, 0, per_chunk * k);
    let mut sums = vec![0.0f64; dx.len()];
    for first in (0..n).step_by(block) {
        let weight = rows.slice(first..n.min(first + block));
        let compute = |c: usize, sums: &mut [f64]| {
            cpu_ref::add_matmul_input(&weight, first, &dy[c * per_chunk * n..][..sums.len() / k * n], sums);
        };
        in_turns(&mut sums, per_chunk * k, compute).await;
    }
    dx.iter_mut().zip(&sums).for_each(|(dx, &sum)| *dx = sum as f32);
}
