//! Copies rows of states: to the host and back for snapshots, and within the device for forks.

use super::{States, Store, buffer, next_generation, zeroed};
use crate::error::Error;
use crate::exec::readback::{Pool, Read};
use crate::graph::tensor::State;
use std::ops::Range;

/// Bytes that are copied between host and device at a time.
const PIECE_BYTES: usize = 4 << 20;

/// Splits positions of a state of `rows` rows into runs of at most `most` rows, as (first row,
/// count). A run ends where the ring wraps.
fn runs(positions: Range<u32>, rows: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut at = positions.start;
    std::iter::from_fn(move || {
        let row = at % rows;
        let count = (positions.end - at).min(rows - row).min(most);
        at += count;
        (count > 0).then_some((row, count))
    })
}

impl States {
    /// The runs of these positions in the state's memory, as (first byte, bytes).
    fn places(&self, state: State, sequence: u32, positions: Range<u32>) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, row) = (self.rows(state), self.kind(state).row_bytes());
        assert!(
            sequence < self.kind(state).sequences(self.sequences) && positions.len() <= rows as usize,
            "{positions:?} of a state that holds {rows}"
        );
        let most = (PIECE_BYTES / row).max(1) as u32;
        let base = sequence as usize * rows as usize;
        runs(positions, rows, most).map(move |(first, count)| ((base + first as usize) * row, count as usize * row))
    }

    /// Calls `each` with the rows of one sequence's positions in order, some megabytes at a time.
    /// The rows have the layout of [`cpu_ref::KvType`] on both executors.
    ///
    /// # Errors
    /// Errors of `each` and of the device.
    ///
    /// # Panics
    /// If the state does not hold these positions.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read<E: From<Error>>(
        &self,
        state: State,
        sequence: u32,
        positions: Range<u32>,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let places = self.places(state, sequence, positions.clone());
        let (device, buffers) = match &self.store {
            Store::Gpu(device, buffers) => (device, buffers),
            Store::Cpu(all) => {
                let bytes = &all[state.0 as usize];
                return places.into_iter().try_for_each(|(at, len)| each(&bytes[at..at + len]));
            }
        };
        let row = self.kind(state).row_bytes();
        let pool = Pool::new(device, (positions.len() * row).min(PIECE_BYTES).max(row) as u64);
        for (at, len) in places {
            let target = pool.take()?;
            let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&buffers[state.0 as usize], at as u64, &target, 0, Some(len as u64));
            let submission = device.0.queue.submit([encoder.finish()]);
            let outputs = pollster::block_on(Read::start(&pool, target, submission, vec![(0, len as u64)]).wait())?;
            each(bytemuck::cast_slice(&outputs.0[0]))?;
        }
        Ok(())
    }

    /// Writes rows in the layout of [`States::read`].
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Panics
    /// If the state does not hold these positions, or the number of bytes is wrong.
    pub fn write(&mut self, state: State, sequence: u32, positions: Range<u32>, mut bytes: &[u8]) -> Result<(), Error> {
        assert_eq!(bytes.len(), positions.len() * self.kind(state).row_bytes(), "bytes of {positions:?}");
        for (at, len) in self.places(state, sequence, positions) {
            let (piece, rest) = bytes.split_at(len);
            bytes = rest;
            match &mut self.store {
                Store::Gpu(device, buffers) => {
                    device.0.queue.write_buffer(&buffers[state.0 as usize], at as u64, piece);
                    device.flush()?;
                }
                Store::Cpu(all) => all[state.0 as usize][at..at + len].copy_from_slice(piece),
            }
        }
        Ok(())
    }

    /// New states with the same contents at the first `positions` positions of every sequence. On
    /// a GPU, the rows are copied within device memory.
    ///
    /// # Errors
    /// As [`States::new`].
    pub fn fork(&self, positions: u32) -> Result<Self, Error> {
        let Self { sequences, capacity, .. } = *self;
        let bytes = |n: usize, positions: u32| (self.kinds[n].rows(positions) as usize).saturating_mul(self.kinds[n].row_bytes());
        let live = |n| bytes(n, positions.min(capacity));
        let store = match &self.store {
            Store::Gpu(device, all) => {
                let copies = self.kinds.iter().map(|k| buffer(device, k, sequences, capacity)).collect::<Result<Vec<_>, _>>()?;
                let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                for (n, (from, to)) in all.iter().zip(&copies).enumerate().filter(|(n, _)| live(*n) > 0) {
                    for s in 0..u64::from(self.kinds[n].sequences(sequences)) {
                        let at = s * bytes(n, capacity) as u64;
                        encoder.copy_buffer_to_buffer(from, at, to, at, Some(live(n) as u64));
                    }
                }
                device.0.queue.submit([encoder.finish()]);
                device.check("copying states")?;
                Store::Gpu(device.clone(), copies)
            }
            Store::Cpu(all) => {
                let mut copies = self.kinds.iter().map(|k| zeroed(k, sequences, capacity)).collect::<Result<Vec<_>, _>>()?;
                for (n, (from, to)) in all.iter().zip(&mut copies).enumerate().filter(|(n, _)| live(*n) > 0) {
                    let sequences = from.chunks_exact(bytes(n, capacity)).zip(to.chunks_exact_mut(bytes(n, capacity)));
                    sequences.for_each(|(from, to)| to[..live(n)].copy_from_slice(&from[..live(n)]));
                }
                Store::Cpu(copies)
            }
        };
        Ok(Self { kinds: self.kinds.clone(), sequences, capacity, generation: next_generation(), store })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::executor::Executor;
    use crate::graph::tensor::StateKind;
    use cpu_ref::KvType;

    #[test]
    fn runs_are_cut_where_the_ring_starts_again() {
        let all = |positions, rows, most| runs(positions, rows, most).collect::<Vec<_>>();
        assert_eq!(all(0..4, 4, 9), [(0, 4)]);
        assert_eq!(all(3..7, 4, 9), [(3, 1), (0, 3)]);
        assert_eq!(all(9..14, 5, 2), [(4, 1), (0, 2), (2, 2)]);
        assert_eq!(all(7..7, 5, 2), []);
    }

    #[test]
    fn rows_go_out_and_in_and_into_a_fork_across_the_end_of_a_ring() {
        let kinds = [StateKind::Kv { ty: KvType::Q8_0, width: 40, ring: Some(7) }, StateKind::Tokens];
        let row = kinds[0].row_bytes();
        let bytes: Vec<u8> = (0..6 * row).map(|n| (n % 251) as u8).collect();
        let held = |states: &States, positions: Range<u32>| {
            let mut read = vec![];
            let each = |piece: &[u8]| {
                read.extend_from_slice(piece);
                Ok::<(), Error>(())
            };
            states.read(State(0), 1, positions, each).expect("rows");
            read
        };
        for executor in [Executor::Cpu, Executor::Gpu(crate::device::tests::device())] {
            let mut states = States::new(&executor, &kinds, 2, 30).expect("states");
            states.write(State(0), 1, 10..16, &bytes).expect("room");
            assert_eq!(held(&states, 10..16), bytes, "{}", executor.kind());
            let fork = states.fork(16).expect("room");
            states.write(State(0), 1, 15..16, &vec![0; row]).expect("room");
            assert_eq!(held(&fork, 11..16), bytes[row..], "a fork keeps what it has");
            assert_eq!(held(&states, 10..15), bytes[..5 * row]);
            assert_eq!(held(&states, 15..16), vec![0; row]);
            // A fork of four positions copies the first four rows, even of a ring that has wrapped.
            assert_eq!(held(&states.fork(4).expect("room"), 14..17)[..row], bytes[4 * row..5 * row]);
        }
    }
}
