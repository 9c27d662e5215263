//! The inputs that the host writes for each step. One write costs more than a dispatch, so a write
//! also contains the inputs of the most likely next steps.

use super::angles::Angles;
use super::cpu::write_input;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::graph::input::StepInput;
use crate::graph::tensor::{Input, Shape};
use crate::plan::Placement;
use std::ops::Range;

/// Number of steps that one write holds, at most.
const STEPS: u64 = 8;

/// Bytes of one write, at most (one step always fits). A larger write costs more than it saves.
const BYTES: u64 = 64 << 10;

/// The step buffer. Each slot holds the inputs of one step. All slots are written together.
pub(super) struct Inputs {
    buffer: Buffer,
    /// The words of all slots, as on the device.
    written: Vec<u32>,
    /// Words of a slot.
    slot_words: usize,
    /// The slot of the current step.
    slot: usize,
    /// The predicted steps in the slots after it, in reverse order: the next step is last.
    foreseen: Vec<StepInput>,
}

impl Inputs {
    pub async fn new(device: &Device, bytes: u64) -> Result<Self, Error> {
        let all = bytes * (BYTES / bytes.max(1)).clamp(1, STEPS);
        let buffer =
            device.buffer("the step inputs", all, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST).await?;
        Ok(Self {
            buffer,
            written: vec![0; all as usize / 4],
            slot_words: bytes as usize / 4,
            slot: 0,
            foreseen: vec![],
        })
    }

    /// How many steps fit.
    pub fn slots(&self) -> usize {
        self.written.len().checked_div(self.slot_words).unwrap_or(1)
    }

    /// The slot of the step that was given to the last [`Inputs::prepare`].
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The binding of `bytes` bytes at `offset` in a slot.
    pub fn binding(&self, slot: usize, offset: u64, bytes: u64) -> wgpu::BufferBinding<'_> {
        let size = std::num::NonZeroU64::new(bytes.max(16).next_multiple_of(16));
        wgpu::BufferBinding { buffer: &self.buffer, offset: 4 * slot as u64 * self.slot_words as u64 + offset, size }
    }

    /// Makes a slot hold this step. If the step equals the predicted one, the next slot holds it
    /// already. Otherwise the first slot gets it, and the other slots get the predicted steps.
    pub fn prepare(&mut self, device: &Device, input: &StepInput, of: &Sources<'_>) {
        if self.foreseen.pop().as_ref() == Some(input) {
            self.slot += 1;
            return;
        }
        let steps: Vec<_> = std::iter::successors(input.next(), StepInput::next).take(self.slots() - 1).collect();
        let mut changed = 0..0;
        for (slot, step) in std::iter::once(input).chain(&steps).enumerate() {
            let start = slot * self.slot_words;
            let words = of.write(step, &mut self.written[start..start + self.slot_words]);
            changed.end = start + words.end;
            if slot == 0 {
                changed.start = words.start;
            }
        }
        if !changed.is_empty() {
            let words = bytemuck::cast_slice(&self.written[changed.clone()]);
            device.0.queue.write_buffer(&self.buffer, 4 * changed.start as u64, words);
        }
        (self.slot, self.foreseen) = (0, steps.into_iter().rev().collect());
    }
}

/// The data of a plan that the words of a step's inputs are made from.
pub(super) struct Sources<'a> {
    pub placement: &'a Placement,
    pub origins: &'a [Shape],
    pub ropes: &'a [Angles],
}

impl Sources<'_> {
    /// Writes the words of every input into a slot, and returns the range that they span. Kernels
    /// that take tiles of rows also read the inputs of rows past the step, for example their
    /// positions. These rows repeat the last row of the step, because a position that an earlier
    /// step left there may be the position of a key that does not exist.
    fn write(&self, input: &StepInput, slot: &mut [u32]) -> Range<usize> {
        let mut written = None::<Range<usize>>;
        for &(id, kind, offset, _) in &self.placement.inputs {
            let shape = self.origins[id as usize];
            let start = offset as usize / 4;
            let mut end = start + shape.rows_at(input.counts()) as usize * shape.width() as usize;
            write_input(kind, input, self.ropes, &mut slot[start..end]);
            let places =
                matches!(kind, Input::Positions | Input::Ends | Input::Sequences | Input::Firsts | Input::Numbers);
            if places && end > start {
                let past = end..start + shape.rows as usize;
                let last = slot[end - 1];
                slot[past.clone()].fill(last);
                end = past.end;
            }
            if end > start {
                let so_far = written.unwrap_or(start..end);
                written = Some(so_far.start.min(start)..so_far.end.max(end));
            }
        }
        written.unwrap_or(0..0)
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
        goes_on
            .then(|| Self { positions: self.positions.iter().map(|p| p.saturating_add(1)).collect(), ..self.clone() })
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
            let held = &inputs.written[inputs.slot * inputs.slot_words..][..inputs.slot_words];
            let mut expected = held.to_vec();
            expected[..2].fill(u32::MAX);
            expected[64..66].fill(u32::MAX);
            assert_eq!(sources.write(&input, &mut expected), 0..66);
            assert_eq!(held, expected, "{input:?}");
            inputs.slot
        };
        let slots: Vec<_> = (0..10).map(|n| slot(step(&[n, 7 + n], &[0, 1]))).collect();
        assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert_eq!([slot(step(&[9, 16], &[0, 1])), slot(step(&[10, 17], &[0, 1]))], [0, 1], "the same position again");
        assert_eq!([slot(step(&[11, 18], &[1, 0])), slot(step(&[12, 19], &[1, 0]))], [0, 1], "other sequences");
        assert_eq!(
            [slot(step(&[13], &[1])), slot(step(&[u32::MAX], &[1])), slot(step(&[u32::MAX], &[1]))],
            [0, 0, 1],
            "another row"
        );
        assert_eq!([slot(step(&[3, 4], &[0, 0])), slot(step(&[4, 5], &[0, 0]))], [0, 0], "two rows of a prompt");
        let ends = || StepInput { ends: vec![4], ..step(&[3], &[1]) };
        assert_eq!([slot(ends()), slot(step(&[4], &[1]))], [0, 0], "what has ends is not foreseen");
    }

    #[test]
    fn rows_past_the_step_repeat_the_last_row() {
        let inputs = vec![(0, Input::Positions, 0, 16), (1, Input::Sequences, 256, 16)];
        let placement = Placement { inputs, input_bytes: 512, ..Placement::default() };
        let sources = Sources { placement: &placement, origins: &[Shape::new(Lead::Step, 4, 1); 2], ropes: &[] };
        let mut slot = [9; 128];
        assert_eq!(sources.write(&step(&[7, 8], &[3, 1]), &mut slot), 0..68);
        assert_eq!((&slot[..4], &slot[64..68]), (&[7, 8, 8, 8][..], &[3, 1, 1, 1][..]));
        assert!(slot[4..64].iter().chain(&slot[68..]).all(|&word| word == 9), "other words stay");
    }

    #[test]
    fn large_inputs_have_one_slot() {
        let device = Device::auto().expect("an adapter, if only the software one");
        let slots = [256, 8 << 10, 9 << 10, 64 << 10, 65 << 10]
            .map(|bytes| block_on(Inputs::new(&device, bytes)).expect("a buffer").slots());
        assert_eq!(slots, [8, 8, 7, 1, 1]);
    }
}
