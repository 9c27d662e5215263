//! The host's copies of a device's states, each made when an operation needs it.

use super::chosen::{Chosen, Drawn, appended};
use crate::error::Error;
use crate::exec::states::{Memory, States, zeroed};
use crate::exec::weights::Weights;
use crate::graph::host::Store;
use crate::graph::input::StepInput;
use crate::graph::record::Node;
use crate::graph::tensor::{Place, State, StateKind, Weight};
use crate::language::Primitive;
use cpu_ref::KvType;

/// Rows of a state from which its drawn rows are mixed.
const EVALUATED: usize = 64;

/// The share of the difference of two rows in a drawn row: drawn keys differ, and have the sizes
/// and the common part of keys that the model computed.
const SPREAD: f32 = 0.3;

/// Copies of the states of one device.
pub(super) struct Copies {
    kinds: Vec<StateKind>,
    sequences: u32,
    capacity: u32,
    generation: u64,
    held: Vec<Option<Memory>>,
    /// Whether a copy is the device's state.
    fresh: Vec<bool>,
    /// Whether the rows of the state were drawn.
    drawn: Vec<bool>,
}

impl Copies {
    pub fn new(states: &States) -> Self {
        let kinds: Vec<StateKind> = (0..states.len()).map(|n| states.kind(states.state(n))).collect();
        let held = kinds.iter().map(|_| None).collect();
        let [fresh, drawn] = [(); 2].map(|()| vec![false; kinds.len()]);
        let (sequences, capacity, generation) = (states.sequences(), states.capacity(), states.generation);
        Self { kinds, sequences, capacity, generation, held, fresh, drawn }
    }

    /// Whether these are copies of such states.
    pub fn fit(&self, states: &States) -> bool {
        self.generation == states.generation
    }

    /// Notes that a dispatch writes a state.
    pub fn changed(&mut self, state: State) {
        self.fresh[state.0 as usize] = false;
    }

    /// Notes that all states may have changed.
    pub fn all_changed(&mut self) {
        self.fresh.fill(false);
    }

    /// Copies a state of the device, unless nothing changed it since.
    pub async fn refresh(&mut self, states: &States, state: State) -> Result<(), Error> {
        let n = state.0 as usize;
        if !self.fresh[n] {
            let bytes = whole(states, state).await?;
            if self.held[n].is_none() {
                self.held[n] = Some(zeroed(&self.kinds[n], self.sequences, self.capacity)?);
            }
            self.held[n].as_mut().expect("just made").copy_from_slice(&bytes);
            self.fresh[n] = true;
        }
        Ok(())
    }

    /// Puts the rows that the device appended for the rows of the step that were not chosen into
    /// the copies. The oracles append the chosen rows.
    pub fn take_over(
        &mut self,
        chosen: &Chosen,
        parts: &[Node<Primitive>],
        of_states: &[(State, Vec<u8>)],
        input: &StepInput,
    ) {
        for (state, bytes) in of_states.iter().filter(|(state, _)| appended(parts).contains(state)) {
            let kind = self.kinds[state.0 as usize];
            let held = self.held[state.0 as usize].as_mut().expect("a state that the dispatches bind");
            for row in chosen.others(input, kind.rows(self.capacity)) {
                let row = row * kind.row_bytes()..(row + 1) * kind.row_bytes();
                held[row.clone()].copy_from_slice(&bytes[row]);
            }
        }
    }

    /// Fills a cache with drawn rows, on the device and in the copy, once. The rows are mixed from
    /// the rows that the state has.
    pub async fn draw(&mut self, states: &mut States, state: State, seed: u64) -> Result<(), Error> {
        let n = state.0 as usize;
        let StateKind::Kv { ty, width, .. } = self.kinds[n] else { return Ok(()) };
        if self.drawn[n] {
            return Ok(());
        }
        self.refresh(states, state).await?;
        let (rows, row_bytes) = (states.rows(state), self.kinds[n].row_bytes());
        let held = self.held[n].as_mut().expect("refreshed");
        fill(held, ty, width as usize, seed ^ u64::from(state.0));
        for (sequence, bytes) in (0..self.sequences).zip(held.chunks_exact(rows as usize * row_bytes)) {
            states.write_async(state, sequence, 0..rows, bytes).await?;
        }
        self.drawn[n] = true;
        Ok(())
    }
}

/// Fills a cache with rows that are mixed from the first of its rows that are not zero.
fn fill(bytes: &mut [u8], ty: KvType, width: usize, seed: u64) {
    let row_bytes = ty.row_bytes(width);
    let some = bytes.chunks_exact(row_bytes).enumerate().filter(|(_, row)| row.iter().any(|byte| *byte != 0));
    let evaluated: Vec<usize> = some.map(|(at, _)| at).take(EVALUATED).collect();
    let mut drawn = Drawn(seed);
    let mut source = vec![0.0; evaluated.len().max(1) * width];
    for (&at, row) in evaluated.iter().zip(source.chunks_exact_mut(width)) {
        cpu_ref::kv_read(bytes, ty, width, at, row);
    }
    if evaluated.is_empty() {
        let unit = |drawn: &mut Drawn| drawn.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0;
        source = (0..EVALUATED * width).map(|_| unit(&mut drawn)).collect();
    }
    let count = (source.len() / width) as u32;
    let mut mixed = vec![0.0; width];
    for at in 0..bytes.len() / row_bytes {
        let [a, b, c] = [(); 3].map(|()| &source[drawn.below(count) as usize * width..][..width]);
        mixed.iter_mut().zip(a.iter().zip(b.iter().zip(c))).for_each(|(x, (a, (b, c)))| *x = a + SPREAD * (b - c));
        cpu_ref::kv_append(bytes, ty, width, at, &mixed);
    }
}

/// The bytes of a state, all sequences one after the other.
pub(super) async fn whole(states: &States, state: State) -> Result<Vec<u8>, Error> {
    let kind = states.kind(state);
    let mut bytes = Vec::with_capacity(states.rows(state) as usize * kind.row_bytes());
    for sequence in 0..kind.sequences(states.sequences()) {
        let each = |piece: &[u8]| -> Result<(), Error> {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        states.read_async(state, sequence, 0..states.rows(state), each).await?;
    }
    Ok(bytes)
}

/// The weights of the host and the copies of the states.
pub(super) struct OfMirror<'a> {
    pub weights: &'a Weights,
    pub copies: &'a mut Copies,
}

impl OfMirror<'_> {
    fn memory(&self, state: State) -> &Memory {
        self.copies.held[state.0 as usize].as_ref().expect("a state that the dispatches bind")
    }
}

impl Store for OfMirror<'_> {
    fn vector(&self, weight: Weight) -> &[f32] {
        match weight.place {
            Place::Loaded(n) => self.weights.values_of(n),
            Place::State(s) => bytemuck::cast_slice(self.memory(s).words()),
        }
    }

    fn matrix(&self, weight: Weight) -> cpu_ref::Rows<'_> {
        match weight.place {
            Place::Loaded(n) => self.weights.matrix_of(n),
            Place::State(s) => cpu_ref::Rows::new(weight.ty, weight.cols as usize, self.memory(s)),
        }
    }

    fn kind(&self, state: State) -> StateKind {
        self.copies.kinds[state.0 as usize]
    }

    fn rows(&self, state: State) -> u32 {
        self.kind(state).rows(self.copies.capacity)
    }

    fn state(&self, state: State) -> &[u8] {
        self.memory(state)
    }

    fn state_mut(&mut self, state: State) -> &mut [u8] {
        self.copies.held[state.0 as usize].as_mut().expect("a state that the dispatches bind")
    }
}
