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
    /// The runs of these positions in the state's memory, as (first byte, bytes). The first byte
    /// may exceed 32 bits.
    fn places(&self, state: State, sequence: u32, positions: Range<u32>) -> impl Iterator<Item = (u64, usize)> + use<> {
        let (rows, row) = (self.rows(state), self.kind(state).row_bytes());
        assert!(
            sequence < self.kind(state).sequences(self.sequences) && positions.len() <= rows as usize,
            "{positions:?} of a state that holds {rows}"
        );
        let most = (PIECE_BYTES / row).max(1) as u32;
        let base = u64::from(sequence) * u64::from(rows);
        runs(positions, rows, most)
            .map(move |(first, count)| ((base + u64::from(first)) * row as u64, count as usize * row))
    }

    /// Calls `each` with the rows of one sequence's positions in order, some megabytes at a time.
    /// The rows have the layout of [`cpu_ref::KvType`] on both executors.
    ///
    /// # Errors
    /// Errors of `each` and of the device.
    ///
    /// # Panics
    /// If the state does not hold these positions.
    pub async fn read_async<E: From<Error>>(
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
                return places.into_iter().try_for_each(|(at, len)| each(&bytes[at as usize..][..len]));
            }
        };
        let row = self.kind(state).row_bytes();
        let pool = Pool::new(device, (positions.len() as u64 * row as u64).min(PIECE_BYTES as u64).max(row as u64));
        for (at, len) in places {
            let target = pool.take().await?;
            let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&buffers[state.0 as usize], at, &target, 0, Some(len as u64));
            let submission = device.submit(encoder);
            let outputs = Read::start(&pool, target, submission, vec![(0, len as u64)]).wait().await?;
            each(bytemuck::cast_slice(&outputs.0[0]))?;
        }
        Ok(())
    }

    /// Writes rows in the layout of [`States::read_async`].
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Panics
    /// If the state does not hold these positions, or the number of bytes is wrong.
    pub async fn write_async(
        &mut self,
        state: State,
        sequence: u32,
        positions: Range<u32>,
        mut bytes: &[u8],
    ) -> Result<(), Error> {
        assert_eq!(
            bytes.len() as u64,
            positions.len() as u64 * self.kind(state).row_bytes() as u64,
            "bytes of {positions:?}"
        );
        for (at, len) in self.places(state, sequence, positions) {
            let (piece, rest) = bytes.split_at(len);
            bytes = rest;
            match &mut self.store {
                Store::Gpu(device, buffers) => {
                    device.0.queue.write_buffer(&buffers[state.0 as usize], at, piece);
                    device.flush("writing rows of a state").await?;
                }
                Store::Cpu(all) => all[state.0 as usize][at as usize..][..len].copy_from_slice(piece),
            }
        }
        Ok(())
    }

    /// New states with the same contents at the first `positions` positions of every sequence. On
    /// a GPU, the rows are copied within device memory.
    ///
    /// # Errors
    /// As [`States::new_async`].
    pub async fn fork_async(&self, positions: u32) -> Result<Self, Error> {
        let Self { sequences, capacity, .. } = *self;
        let bytes = |n: usize, positions: u32| {
            u64::from(self.kinds[n].rows(positions)).saturating_mul(self.kinds[n].row_bytes() as u64)
        };
        let live = |n| bytes(n, positions.min(capacity));
        let store = match &self.store {
            Store::Gpu(device, all) => {
                let mut copies = vec![];
                for kind in &self.kinds {
                    copies.push(buffer(device, kind, sequences, capacity).await?);
                }
                let mut encoder = device.0.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                for (n, (from, to)) in all.iter().zip(&copies).enumerate().filter(|(n, _)| live(*n) > 0) {
                    for s in 0..u64::from(self.kinds[n].sequences(sequences)) {
                        let at = s * bytes(n, capacity);
                        encoder.copy_buffer_to_buffer(from, at, to, at, Some(live(n)));
                    }
                }
                device.submit(encoder);
                device.check("copying states")?;
                Store::Gpu(device.clone(), copies)
            }
            Store::Cpu(all) => {
                let mut copies =
                    self.kinds.iter().map(|k| zeroed(k, sequences, capacity)).collect::<Result<Vec<_>, _>>()?;
                for (n, (from, to)) in all.iter().zip(&mut copies).enumerate().filter(|(n, _)| live(*n) > 0) {
                    let (each, live) = (bytes(n, capacity) as usize, live(n) as usize);
                    let sequences = from.chunks_exact(each).zip(to.chunks_exact_mut(each));
                    sequences.for_each(|(from, to)| to[..live].copy_from_slice(&from[..live]));
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
