//! The inputs that the host writes for each step. One write costs more than a dispatch, so a write
//! also contains the inputs of the most likely next steps.

use super::cpu::input_words;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::graph::input::StepInput;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{Input, Shape};
use crate::plan::Placement;

/// Number of steps that one write holds, at most.
const STEPS: u64 = 8;

/// Bytes of one write, at most (one step always fits). A larger write costs more than it saves.
const BYTES: u64 = 64 << 10;

/// The step buffer. Each slot holds the inputs of one step; all slots are written together.
pub(super) struct Inputs {
    buffer: Buffer,
    /// The bytes of all slots, as on the device.
    written: Vec<u8>,
    slot_bytes: usize,
    /// The slot of the current step.
    slot: usize,
    /// The predicted steps in the slots after it, in reverse order: the next step is last.
    foreseen: Vec<StepInput>,
}

impl Inputs {
    pub async fn new(device: &Device, bytes: u64) -> Result<Self, Error> {
        let all = bytes * (BYTES / bytes.max(1)).clamp(1, STEPS);
        let buffer = device.buffer("the step inputs", all, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST).await?;
        Ok(Self { buffer, written: vec![0; all as usize], slot_bytes: bytes as usize, slot: 0, foreseen: vec![] })
    }

    /// How many steps fit.
    pub fn slots(&self) -> usize {
        self.written.len().checked_div(self.slot_bytes).unwrap_or(1)
    }

    /// The slot of the step that was given to the last [`Inputs::prepare`].
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The binding of `bytes` bytes at `offset` in a slot.
    pub fn binding(&self, slot: usize, offset: u64, bytes: u64) -> wgpu::BufferBinding<'_> {
        let size = std::num::NonZeroU64::new(bytes.max(16).next_multiple_of(16));
        wgpu::BufferBinding { buffer: &self.buffer, offset: slot as u64 * self.slot_bytes as u64 + offset, size }
    }

    /// Makes a slot hold this step. If the step equals the predicted one, the next slot holds it
    /// already. Otherwise the first slot gets it, and the other slots get the predicted steps.
    pub fn prepare(&mut self, device: &Device, input: &StepInput, of: &Sources<'_>) {
        if self.foreseen.pop().as_ref() == Some(input) {
            self.slot += 1;
            return;
        }
        let steps: Vec<_> = std::iter::successors(input.next(), StepInput::next).take(self.slots() - 1).collect();
        let (mut first, mut last) = (usize::MAX, 0);
        for (slot, step) in std::iter::once(input).chain(&steps).enumerate() {
            for (offset, words) in of.words(step) {
                let at = slot * self.slot_bytes + offset;
                let bytes = bytemuck::cast_slice(&words);
                self.written[at..at + bytes.len()].copy_from_slice(bytes);
                (first, last) = (first.min(at), last.max(at + bytes.len()));
            }
        }
        if first < last {
            device.0.queue.write_buffer(&self.buffer, first as u64, &self.written[first..last]);
        }
        (self.slot, self.foreseen) = (0, steps.into_iter().rev().collect());
    }
}

/// The data of a plan that the words of a step's inputs are made from.
pub(super) struct Sources<'a> {
    pub placement: &'a Placement,
    pub origins: &'a [Shape],
    pub ropes: &'a [RopeTable],
}

impl Sources<'_> {
    /// The offset in the slot and the words of every input. Kernels that take tiles of rows look at
    /// the places of rows past the step: these repeat the last row, because a place that an earlier
    /// step left there may be that of a key that does not exist.
    fn words(&self, input: &StepInput) -> Vec<(usize, Vec<u32>)> {
        let words = |&(id, kind, offset, _): &_| {
            let shape = self.origins[id as usize];
            let mut words = input_words(kind, shape, input, self.ropes);
            if let (Input::Positions | Input::Ends | Input::Sequences | Input::Firsts | Input::Numbers, Some(&last)) = (kind, words.last())
            {
                words.resize(shape.rows as usize, last);
            }
            (offset as usize, words)
        };
        self.placement.inputs.iter().map(words).collect()
    }
}

impl StepInput {
    /// The predicted next step: every row advances by one position, as in text generation. None if
    /// the step has inputs that cannot be predicted, or rows of one sequence, which are a prompt.
    fn next(&self) -> Option<Self> {
        let goes_on = self.ends.is_empty()
            && self.ids.is_empty()
            && self.firsts.is_empty()
            && self.targets.is_empty()
            && self.host.is_empty()
            && self.sequences.windows(2).all(|two| two[0] != two[1]);
        goes_on.then(|| Self { positions: self.positions.iter().map(|p| p.saturating_add(1)).collect(), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tensor::Lead;
    use crate::platform::block_on;

    fn step(positions: &[u32], sequences: &[u32]) -> StepInput {
        StepInput { positions: positions.to_vec(), sequences: sequences.to_vec(), ..StepInput::default() }
    }

    /// While positions advance by one, each step takes the next slot, and the first slot follows
    /// the last. A step that was not predicted is written.
    #[test]
    fn what_was_foreseen_is_not_written_again() {
        let device = Device::auto().expect("an adapter, if only the software one");
        let inputs = vec![(0, Input::Positions, 0, 8), (1, Input::Sequences, 256, 8)];
        let placement = Placement { inputs, input_bytes: 512, ..Placement::default() };
        let sources = Sources { placement: &placement, origins: &[Shape::new(Lead::Step, 2, 1); 2], ropes: &[] };
        let mut inputs = block_on(Inputs::new(&device, placement.input_bytes)).expect("a buffer");
        let mut slot = |input: StepInput| {
            inputs.prepare(&device, &input, &sources);
            for (offset, words) in sources.words(&input) {
                let held = &inputs.written[inputs.slot * inputs.slot_bytes + offset..];
                assert!(held.starts_with(bytemuck::cast_slice(&words)), "{input:?}");
            }
            inputs.slot
        };
        let slots: Vec<_> = (0..10).map(|n| slot(step(&[n, 7 + n], &[0, 1]))).collect();
        assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert_eq!([slot(step(&[9, 16], &[0, 1])), slot(step(&[10, 17], &[0, 1]))], [0, 1], "the same position again");
        assert_eq!([slot(step(&[11, 18], &[1, 0])), slot(step(&[12, 19], &[1, 0]))], [0, 1], "other sequences");
        assert_eq!([slot(step(&[13], &[1])), slot(step(&[u32::MAX], &[1])), slot(step(&[u32::MAX], &[1]))], [0, 0, 1], "another row");
        assert_eq!([slot(step(&[3, 4], &[0, 0])), slot(step(&[4, 5], &[0, 0]))], [0, 0], "two rows of a prompt");
        let ends = || StepInput { ends: vec![4], ..step(&[3], &[1]) };
        assert_eq!([slot(ends()), slot(step(&[4], &[1]))], [0, 0], "what has ends is not foreseen");
    }

    #[test]
    fn rows_past_the_step_repeat_the_last_row() {
        let inputs = vec![(0, Input::Positions, 0, 16), (1, Input::Sequences, 256, 16)];
        let placement = Placement { inputs, input_bytes: 512, ..Placement::default() };
        let sources = Sources { placement: &placement, origins: &[Shape::new(Lead::Step, 4, 1); 2], ropes: &[] };
        assert_eq!(sources.words(&step(&[7, 8], &[3, 1])), [(0, vec![7, 8, 8, 8]), (256, vec![3, 1, 1, 1])]);
    }

    #[test]
    fn large_inputs_have_one_slot() {
        let device = Device::auto().expect("an adapter, if only the software one");
        let slots =
            [256, 8 << 10, 9 << 10, 64 << 10, 65 << 10].map(|bytes| block_on(Inputs::new(&device, bytes)).expect("a buffer").slots());
        assert_eq!(slots, [8, 8, 7, 1, 1]);
    }
}
