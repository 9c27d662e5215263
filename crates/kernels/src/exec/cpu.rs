//! The CPU executor: a recording as it was made, through the oracles, rows in parallel.

use super::{Outputs, StepInput, Watch};
use crate::error::Error;
use crate::ops::Operation;
use crate::plan::{PlanOptions, requested};
use crate::record::{Node, Origin, Recorder, RopeTable};
use crate::states::{States, Store};
use crate::tensor::{Counts, Input, Shape, State, StateKind, Tensor, Weight};
use crate::weights::Weights;
use std::sync::Arc;

/// A recording with the last reader of every value, so that memory is given back as early as on the GPU.
pub struct CpuPlan {
    rec: Recorder,
    weights: Arc<Weights>,
    read_back: Vec<Tensor>,
    /// Values whose last reader is the n-th node.
    ends: Vec<Vec<u32>>,
}

impl CpuPlan {
    pub(super) fn new(rec: Recorder, weights: Arc<Weights>, options: &PlanOptions) -> Self {
        let mut read_back = rec.outputs.clone();
        read_back.extend(requested(&rec, options).iter().map(|t| t.tensor));
        let mut last = vec![None; rec.origins.len()];
        for (at, node) in rec.nodes.iter().enumerate() {
            let io = node.op.io();
            io.reads.iter().chain(&io.writes).for_each(|t| last[t.id as usize] = Some(at));
        }
        read_back.iter().for_each(|t| last[t.id as usize] = None);
        let mut ends = vec![vec![]; rec.nodes.len()];
        for (id, at) in last.iter().enumerate() {
            if let (Some(at), Origin::Made) = (at, rec.origins[id].0) {
                ends[*at].push(id as u32);
            }
        }
        Self { rec, weights, read_back, ends }
    }

    pub(super) fn capacity(&self) -> Counts {
        self.rec.capacity
    }

    pub(super) fn run(&mut self, states: &mut States, input: &StepInput, watch: Watch<'_>) -> Result<Outputs, Error> {
        let mut host = Host { counts: input.counts(), weights: &self.weights, states, values: vec![vec![]; self.rec.origins.len()] };
        for (id, (origin, shape)) in self.rec.origins.iter().enumerate() {
            if let Origin::Input(kind) = origin {
                host.values[id] = input_words(*kind, *shape, input, &self.rec.ropes);
            }
        }
        let layers = self.rec.nodes.iter().filter_map(|n| n.layer).max().map_or(0, |l| l + 1);
        let mut layer = None;
        watch.at(0, layers)?;
        for (Node { op, layer: at }, ends) in self.rec.nodes.iter().zip(&self.ends) {
            if *at != layer {
                layer = *at;
                watch.at(layer.unwrap_or(layers), layers)?;
            }
            op.cpu(&mut host);
            ends.iter().for_each(|&id| host.values[id as usize] = vec![]);
        }
        Ok(Outputs(self.read_back.iter().map(|t| host.values[t.id as usize].clone()).collect()))
    }
}

/// Rows of cosines and sines that one thread makes.
const ROPE_ROWS: usize = 64;

/// The words of a step input, at the counts of this step.
pub(crate) fn input_words(kind: Input, shape: Shape, input: &StepInput, ropes: &[RopeTable]) -> Vec<u32> {
    let exact = |words: &[u32]| {
        let expected = shape.rows_at(input.counts()) as usize * shape.width() as usize;
        assert_eq!(words.len(), expected, "{kind:?} for this step");
        words.to_vec()
    };
    match kind {
        Input::Positions => exact(&input.positions),
        Input::Ends => exact(&input.ends),
        Input::Sequences => exact(&input.sequences),
        Input::OutRows => exact(&input.out_rows),
        Input::Rows => exact(&[input.counts().step]),
        Input::Sampling => exact(bytemuck::cast_slice(&input.sampling)),
        Input::Host(n) => exact(bytemuck::cast_slice(&input.host[n as usize])),
        Input::Rope(n) => {
            let &RopeTable { dim, base, scale, ref factors, magnitude } = &ropes[n as usize];
            let spec = cpu_ref::RopeSpec { dim: dim as usize, base, scale, factors: factors.as_deref(), magnitude };
            let mut rows = vec![0.0_f32; input.positions.len() * dim as usize];
            match input.positions.len() {
                0..=ROPE_ROWS => cpu_ref::rope_rows(&spec, &input.positions, &mut rows),
                _ => in_parallel(&mut rows, ROPE_ROWS * spec.dim, |n, part| {
                    let first = n * ROPE_ROWS;
                    cpu_ref::rope_rows(&spec, &input.positions[first..first + part.len() / spec.dim], part);
                }),
            }
            bytemuck::cast_vec(rows)
        }
    }
}

/// What an operation sees when it runs on the CPU.
pub struct Host<'a> {
    counts: Counts,
    weights: &'a Weights,
    states: &'a mut States,
    values: Vec<Vec<u32>>,
}

impl Host<'_> {
    /// The row counts of this run.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Rows per sequence of a state.
    #[must_use]
    pub fn capacity(&self, state: State) -> u32 {
        self.states.rows(state)
    }

    /// A tensor's elements.
    #[must_use]
    pub fn f32(&self, t: Tensor) -> &[f32] {
        bytemuck::cast_slice(&self.values[t.id as usize])
    }

    /// A tensor's elements as integers.
    #[must_use]
    pub fn u32(&self, t: Tensor) -> &[u32] {
        &self.values[t.id as usize]
    }

    /// Room for a tensor that is about to be made.
    #[must_use]
    pub fn take(&self, t: Tensor) -> Vec<f32> {
        vec![0.0; t.shape.rows_at(self.counts) as usize * t.shape.width() as usize]
    }

    /// Stores a tensor.
    pub fn put(&mut self, t: Tensor, values: Vec<f32>) {
        self.values[t.id as usize] = bytemuck::cast_vec(values);
    }

    /// Stores a tensor of integers.
    pub fn put_u32(&mut self, t: Tensor, values: Vec<u32>) {
        self.values[t.id as usize] = values;
    }

    /// A vector weight.
    #[must_use]
    pub fn vector(&self, w: Weight) -> &[f32] {
        self.weights.vector_of(w)
    }

    /// A matrix weight.
    #[must_use]
    pub fn matrix(&self, w: Weight) -> cpu_ref::Rows<'_> {
        self.weights.matrix_of(w)
    }

    /// The bytes of a state.
    #[must_use]
    pub fn state(&self, state: State) -> &[u8] {
        match &self.states.store {
            Store::Cpu(all) => &all[state.0 as usize],
            Store::Gpu(..) => unreachable!("a CPU plan over states of a GPU"),
        }
    }

    /// The bytes of a state, to write.
    pub fn state_mut(&mut self, state: State) -> &mut [u8] {
        match &mut self.states.store {
            Store::Cpu(all) => &mut all[state.0 as usize],
            Store::Gpu(..) => unreachable!("a CPU plan over states of a GPU"),
        }
    }

    /// What a state holds.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.states.kind(state)
    }

    /// The row of a state that a sequence's position lives in.
    #[must_use]
    pub fn slot(&self, state: State, sequence: u32, position: u32) -> usize {
        let rows = self.states.rows(state) as usize;
        sequence as usize * rows + position as usize % rows
    }

    /// The id at a sequence's position.
    #[must_use]
    pub fn token(&self, state: State, sequence: u32, position: u32) -> u32 {
        let at = 4 * self.slot(state, sequence, position);
        let bytes = &self.state(state)[at..at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// Makes `y` from `x` row by row, in parallel; `f` gets some whole rows of both.
    pub fn by_rows(&mut self, x: Tensor, y: Tensor, f: impl Fn(&Self, &[f32], &mut [f32]) + Sync) {
        let mut out = self.take(y);
        let (from, to) = (x.shape.width() as usize, y.shape.width() as usize);
        let rows = y.shape.rows_at(self.counts) as usize;
        let per_chunk = rows.div_ceil(threads()).max(1);
        let (this, source) = (&*self, self.f32(x));
        in_parallel(&mut out, per_chunk * to, |n, out| {
            let first = n * per_chunk * from;
            f(this, &source[first..first + out.len() / to * from], out);
        });
        self.put(y, out);
    }

    /// y [T, N] = x [T, K] w^T, rows of the weight in parallel.
    pub fn matmul(&self, w: Weight, x: &[f32], y: &mut [f32]) {
        let (w, n) = (self.matrix(w), w.rows as usize);
        let rows = x.len() / w.cols;
        if rows == 0 {
            return; // a step that asks for no logits
        }
        let per_chunk = n.div_ceil(4 * threads()).max(1);
        // One column block of y per chunk; rows of y are strided, so blocks are made apart and then set in place.
        let mut blocks = vec![0.0; rows * n];
        in_parallel(&mut blocks, rows * per_chunk, |c, block| {
            let (first, count) = (c * per_chunk, block.len() / rows);
            cpu_ref::matmul(&w.slice(first..first + count), x, block);
        });
        for (c, block) in blocks.chunks(rows * per_chunk).enumerate() {
            let count = block.len() / rows;
            for (t, part) in block.chunks_exact(count).enumerate() {
                y[t * n + c * per_chunk..][..count].copy_from_slice(part);
            }
        }
    }
}

/// Calls `f` with the number and the contents of every chunk, in parallel where there are threads.
pub(crate) fn in_parallel(data: &mut [f32], chunk: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    if data.is_empty() {
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        data.par_chunks_mut(chunk).enumerate().for_each(|(n, part)| f(n, part));
    }
    #[cfg(target_arch = "wasm32")]
    data.chunks_mut(chunk).enumerate().for_each(|(n, part)| f(n, part));
}

/// Threads that [`in_parallel`] works with.
pub(crate) fn threads() -> usize {
    #[cfg(not(target_arch = "wasm32"))]
    {
        rayon::current_num_threads()
    }
    #[cfg(target_arch = "wasm32")]
    1
}
