//! State that outlives a step: KV caches and the ids said so far, per sequence and position.

use crate::device::Device;
use crate::error::Error;
use crate::exec::Executor;
use crate::tensor::{State, StateKind};

pub(crate) enum Store {
    Gpu(Device, Vec<wgpu::Buffer>),
    Cpu(Vec<Vec<u8>>),
}

/// The states of a group of sequences: every kind holds [sequences, capacity] rows.
pub struct States {
    kinds: Vec<StateKind>,
    sequences: u32,
    capacity: u32,
    /// Bumped whenever buffers are swapped, so that plans know to bind anew.
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
    /// [`Error::OutOfMemory`] or [`Error::BindingTooLarge`]; nothing stays allocated.
    pub fn new(executor: &Executor, kinds: &[StateKind], sequences: u32, capacity: u32) -> Result<Self, Error> {
        let store = match executor {
            Executor::Gpu(device) => Store::Gpu(device.clone(), buffers(device, kinds, sequences, capacity)?),
            Executor::Cpu => Store::Cpu(kinds.iter().map(|k| zeroed(k, sequences, capacity)).collect::<Result<_, _>>()?),
        };
        Ok(Self { kinds: kinds.to_vec(), sequences, capacity, generation: next_generation(), store })
    }

    /// Bytes that states of this size take.
    #[must_use]
    pub fn bytes_for(kinds: &[StateKind], sequences: u32, capacity: u32) -> u64 {
        kinds.iter().map(|k| k.row_bytes() as u64).sum::<u64>() * u64::from(sequences) * u64::from(capacity)
    }

    /// Positions per sequence.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
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

    /// What the n-th state holds.
    #[must_use]
    pub fn kind(&self, state: State) -> StateKind {
        self.kinds[state.0 as usize]
    }

    /// Moves everything into states of `capacity` positions; the old ones stay if that fails.
    ///
    /// # Errors
    /// As [`States::new`].
    pub fn grow(&mut self, capacity: u32) -> Result<(), Error> {
        assert!(capacity >= self.capacity, "states never shrink");
        let (old, sequences) = (self.capacity as usize, self.sequences as usize);
        match &mut self.store {
            Store::Gpu(device, current) => {
                let grown = buffers(device, &self.kinds, self.sequences, capacity)?;
                let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                for ((kind, from), to) in self.kinds.iter().zip(&*current).zip(&grown) {
                    let row = kind.row_bytes() as u64;
                    for s in 0..sequences as u64 {
                        let (src, dst) = (s * old as u64 * row, s * u64::from(capacity) * row);
                        encoder.copy_buffer_to_buffer(from, src, to, dst, Some(old as u64 * row));
                    }
                }
                device.0.queue.submit([encoder.finish()]);
                *current = grown;
            }
            Store::Cpu(all) => {
                let mut grown = self.kinds.iter().map(|k| zeroed(k, self.sequences, capacity)).collect::<Result<Vec<_>, _>>()?;
                for ((kind, from), to) in self.kinds.iter().zip(&*all).zip(&mut grown) {
                    let row = kind.row_bytes();
                    for (from, to) in from.chunks_exact(old * row).zip(to.chunks_exact_mut(capacity as usize * row)) {
                        to[..from.len()].copy_from_slice(from);
                    }
                }
                *all = grown;
            }
        }
        self.capacity = capacity;
        self.generation = next_generation();
        Ok(())
    }

    /// Writes ids into a token state from `position` on.
    ///
    /// # Panics
    /// When the range leaves the state; callers check the context first.
    pub fn write_tokens(&mut self, state: State, sequence: u32, position: u32, ids: &[u32]) {
        assert_eq!(self.kind(state), StateKind::Tokens, "ids belong in a token state");
        assert!(sequence < self.sequences && position as usize + ids.len() <= self.capacity as usize, "ids outside the state");
        let offset = 4 * (sequence as usize * self.capacity as usize + position as usize);
        let bytes = bytemuck::cast_slice::<u32, u8>(ids);
        match &mut self.store {
            Store::Gpu(device, buffers) => device.0.queue.write_buffer(&buffers[state.0 as usize], offset as u64, bytes),
            Store::Cpu(all) => all[state.0 as usize][offset..offset + bytes.len()].copy_from_slice(bytes),
        }
    }
}

/// Host memory for one state, or the error that says how much there is not.
fn zeroed(kind: &StateKind, sequences: u32, capacity: u32) -> Result<Vec<u8>, Error> {
    let bytes = (kind.row_bytes() as u64).saturating_mul(u64::from(sequences)).saturating_mul(u64::from(capacity));
    let refused = || Error::OutOfMemory { what: format!("a state of {capacity} positions"), bytes };
    let len = usize::try_from(bytes).map_err(|_| refused())?;
    let mut memory = vec![];
    memory.try_reserve_exact(len).map_err(|_| refused())?;
    memory.resize(len, 0);
    Ok(memory)
}

fn buffers(device: &Device, kinds: &[StateKind], sequences: u32, capacity: u32) -> Result<Vec<wgpu::Buffer>, Error> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    let limit = device.caps().max_binding_bytes;
    let one = |kind: &StateKind| {
        let bytes = kind.row_bytes() as u64 * u64::from(sequences) * u64::from(capacity);
        let what = format!("a state of {capacity} positions");
        if bytes > limit {
            return Err(Error::BindingTooLarge { what, bytes, limit });
        }
        device.buffer(&what, bytes, usage)
    };
    kinds.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_memory_that_is_not_there_is_an_error_and_growth_leaves_what_there_was() {
        let kind = StateKind::Kv { ty: cpu_ref::KvType::F32, width: 1 << 20 };
        let refused = |result: Result<(), Error>| matches!(result, Err(Error::OutOfMemory { bytes, .. }) if bytes > 1 << 50);
        assert!(refused(States::new(&Executor::Cpu, &[kind], 1, u32::MAX).map(drop)));
        assert!(refused(States::new(&Executor::Cpu, &[kind], u32::MAX, u32::MAX).map(drop)), "more than a u64 counts");
        let mut states = States::new(&Executor::Cpu, &[StateKind::Tokens, kind], 1, 2).expect("a few rows");
        assert!(refused(states.grow(u32::MAX)));
        assert_eq!((states.capacity(), states.bytes()), (2, 2 * (4 + (4 << 20))));
    }
}
