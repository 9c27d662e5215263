//! State that outlives a step: KV caches and token ids, per sequence and position.

mod rows;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::executor::Executor;
use crate::error::Error;
use crate::graph::tensor::{State, StateKind};
use std::ops::{Deref, DerefMut};

pub(crate) enum Store {
    Gpu(Device, Vec<Buffer>),
    Cpu(Vec<Memory>),
}

/// Host memory that can be read as bytes and as words.
pub(crate) struct Memory {
    words: Vec<u32>,
    bytes: usize,
}

impl Memory {
    pub fn words(&self) -> &[u32] {
        &self.words
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.bytes]
    }
}

/// The states of a group of sequences. Every state has [`StateKind::rows`] rows for each of
/// [`StateKind::sequences`] sequences.
pub struct States {
    kinds: Vec<StateKind>,
    sequences: u32,
    capacity: u32,
    /// Changes whenever the buffers are replaced. Plans then make new bind groups.
    pub(crate) generation: u64,
    pub(crate) store: Store,
}

fn next_generation() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

impl States {
    /// Zeroed states for `sequences` sequences of up to `capacity` positions.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] or [`Error::BindingTooLarge`]. Nothing stays allocated then.
    pub async fn new_async(
        executor: &Executor,
        kinds: &[StateKind],
        sequences: u32,
        capacity: u32,
    ) -> Result<Self, Error> {
        let store = match executor {
            Executor::Gpu(device) => {
                Self::fit(device, kinds, sequences, capacity)?;
                let mut buffers = vec![];
                for kind in kinds {
                    buffers.push(buffer(device, kind, sequences, capacity).await?);
                }
                Store::Gpu(device.clone(), buffers)
            }
            Executor::Cpu => {
                Store::Cpu(kinds.iter().map(|k| zeroed(k, sequences, capacity)).collect::<Result<_, _>>()?)
            }
        };
        Ok(Self { kinds: kinds.to_vec(), sequences, capacity, generation: next_generation(), store })
    }

    /// Bytes that states of this size take.
    #[must_use]
    pub fn bytes_for(kinds: &[StateKind], sequences: u32, capacity: u32) -> u64 {
        kinds.iter().map(|k| state_bytes(k, sequences, capacity)).fold(0, u64::saturating_add)
    }

    /// Checks that a device can bind states of this size. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::BindingTooLarge`].
    pub fn fit(device: &Device, kinds: &[StateKind], sequences: u32, capacity: u32) -> Result<(), Error> {
        let limit = device.caps().max_binding_bytes;
        match kinds.iter().map(|k| state_bytes(k, sequences, capacity)).max().filter(|&bytes| bytes > limit) {
            Some(bytes) => Err(Error::BindingTooLarge { what: what(capacity), bytes, limit }),
            None => Ok(()),
        }
    }

    /// Positions per sequence. A ring holds only the last of them.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Rows per sequence of the n-th state.
    #[must_use]
    pub fn rows(&self, state: State) -> u32 {
        self.kind(state).rows(self.capacity)
    }

    /// Sequence slots.
    #[must_use]
    pub fn sequences(&self) -> u32 {
        self.sequences
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        Self::bytes_for(&self.kinds, self.sequences, self.capacity)
    }

    /// Number of states.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The handle of the n-th state.
    ///
    /// # Panics
    /// If there are not that many states.
    #[must_use]
    pub fn state(&self, n: usize) -> State {
        assert!(n < self.kinds.len(), "state {n} of {}", self.kinds.len());
        State(n as u32)
    }

    /// The bytes of a state of the CPU executor.
    pub(crate) fn host(&self, state: State) -> &[u8] {
        match &self.store {
            Store::Cpu(all) => &all[state.0 as usize],
            Store::Gpu(..) => unreachable!("a CPU plan over states of a GPU"),
        }
    }

    /// The words of a state of the CPU executor, as f32.
    pub(crate) fn host_words(&self, state: State) -> &[f32] {
        match &self.store {
            Store::Cpu(all) => bytemuck::cast_slice(&all[state.0 as usize].words),
            Store::Gpu(..) => unreachable!("a CPU plan over states of a GPU"),
        }
    }

    /// The bytes of a state of the CPU executor, mutable.
    pub(crate) fn host_mut(&mut self, state: State) -> &mut [u8] {
        match &mut self.store {
            Store::Cpu(all) => &mut all[state.0 as usize],
            Store::Gpu(..) => unreachable!("a CPU plan over states of a GPU"),
        }
    }

    /// The kind of a state.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.kinds[state.0 as usize]
    }

    /// Makes room for `capacity` positions and keeps the contents. A ring at its full length stays
    /// unchanged. A shorter ring has not wrapped yet, so every position keeps its row.
    ///
    /// # Errors
    /// As [`States::new_async`]. The states are unchanged then.
    pub async fn grow_async(&mut self, capacity: u32) -> Result<(), Error> {
        assert!(capacity >= self.capacity, "states never shrink");
        let grows = |kind: &StateKind| kind.rows(capacity) > kind.rows(self.capacity);
        match &mut self.store {
            Store::Gpu(device, current) => {
                Self::fit(device, &self.kinds, self.sequences, capacity)?;
                let mut grown = vec![];
                for (kind, old) in self.kinds.iter().zip(&*current) {
                    grown.push(if grows(kind) {
                        buffer(device, kind, self.sequences, capacity).await?
                    } else {
                        old.clone()
                    });
                }
                let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                for ((kind, from), to) in
                    self.kinds.iter().zip(&*current).zip(&grown).filter(|((kind, _), _)| grows(kind))
                {
                    let [old, new] =
                        [self.capacity, capacity].map(|c| u64::from(kind.rows(c)) * kind.row_bytes() as u64);
                    for s in 0..u64::from(kind.sequences(self.sequences)) {
                        encoder.copy_buffer_to_buffer(from, s * old, to, s * new, Some(old));
                    }
                }
                device.submit(encoder);
                *current = grown;
            }
            Store::Cpu(all) => {
                let room = |kind: &StateKind| grows(kind).then(|| zeroed(kind, self.sequences, capacity)).transpose();
                let room = self.kinds.iter().map(room).collect::<Result<Vec<_>, _>>()?;
                for ((kind, from), to) in self.kinds.iter().zip(all).zip(room) {
                    let Some(mut to) = to else { continue };
                    let [old, new] = [self.capacity, capacity].map(|c| kind.rows(c) as usize * kind.row_bytes());
                    for (from, to) in from.chunks_exact(old).zip(to.chunks_exact_mut(new)) {
                        to[..old].copy_from_slice(from);
                    }
                    *from = to;
                }
            }
        }
        self.capacity = capacity;
        self.generation = next_generation();
        Ok(())
    }

    /// Writes ids into a token state from `position` on.
    ///
    /// # Panics
    /// If the range is outside the state. Callers check the context length first.
    pub fn write_tokens(&mut self, state: State, sequence: u32, position: u32, ids: &[u32]) {
        assert_eq!(self.kind(state), StateKind::Tokens, "ids belong in a token state");
        assert!(
            sequence < self.sequences && position as usize + ids.len() <= self.capacity as usize,
            "ids outside the state"
        );
        self.write_at(state, u64::from(sequence) * u64::from(self.capacity) + u64::from(position), ids);
    }

    /// Writes words into a state of plain words, from index `first` on.
    ///
    /// # Panics
    /// If the state has too few words, or is of another kind.
    pub fn write_words(&mut self, state: State, first: u32, words: &[u32]) {
        let StateKind::Words(held) = self.kind(state) else { panic!("words for {:?}", self.kind(state)) };
        assert!(first as usize + words.len() <= held as usize, "words {first}.. of {held}");
        self.write_at(state, u64::from(first), words);
    }

    /// Sets every word of a state to zero.
    pub fn clear(&mut self, state: State) {
        match &mut self.store {
            Store::Gpu(device, buffers) => {
                let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.clear_buffer(&buffers[state.0 as usize], 0, None);
                device.submit(encoder);
            }
            Store::Cpu(all) => all[state.0 as usize].fill(0),
        }
    }

    /// Writes words from index `first` on. The offset in bytes may exceed 32 bits.
    fn write_at(&mut self, state: State, first: u64, words: &[u32]) {
        let offset = 4 * first;
        let bytes = bytemuck::cast_slice::<u32, u8>(words);
        match &mut self.store {
            Store::Gpu(device, buffers) => device.0.queue.write_buffer(&buffers[state.0 as usize], offset, bytes),
            Store::Cpu(all) => all[state.0 as usize][offset as usize..][..bytes.len()].copy_from_slice(bytes),
        }
    }
}

/// Bytes of one state, or `u64::MAX` if the number does not fit.
fn state_bytes(kind: &StateKind, sequences: u32, capacity: u32) -> u64 {
    (kind.row_bytes() as u64)
        .saturating_mul(u64::from(kind.sequences(sequences)))
        .saturating_mul(u64::from(kind.rows(capacity)))
}

fn what(capacity: u32) -> String {
    format!("a state of {capacity} positions")
}

/// Zeroed host memory for one state, or an error with the number of bytes.
pub(crate) fn zeroed(kind: &StateKind, sequences: u32, capacity: u32) -> Result<Memory, Error> {
    let bytes = state_bytes(kind, sequences, capacity);
    let refused = || Error::OutOfMemory { what: what(capacity), bytes };
    let len = usize::try_from(bytes).map_err(|_| refused())?;
    let mut words = vec![];
    words.try_reserve_exact(len.div_ceil(4)).map_err(|_| refused())?;
    words.resize(len.div_ceil(4), 0);
    Ok(Memory { words, bytes: len })
}

async fn buffer(device: &Device, kind: &StateKind, sequences: u32, capacity: u32) -> Result<Buffer, Error> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    device.buffer(&what(capacity), state_bytes(kind, sequences, capacity), usage).await
}
