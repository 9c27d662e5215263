//! Gives every value a buffer, reusing those whose last reader has run.

use super::Step;
use crate::record::Origin;
use crate::tensor::{Input, Shape, Tensor};
use std::collections::HashMap;

/// Alignment of the inputs inside the step buffer, bytes: the largest that WebGPU allows a device to ask for.
pub const INPUT_ALIGN: u64 = 256;

/// Where values live.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Sizes of the intermediate buffers, bytes.
    pub buffers: Vec<u64>,
    /// Value id to intermediate buffer.
    pub slots: HashMap<u32, usize>,
    /// Inputs in the step buffer: value id, input, offset and capacity in bytes.
    pub inputs: Vec<(u32, Input, u64, u64)>,
    /// Size of the step buffer, bytes.
    pub input_bytes: u64,
}

/// Assigns buffers. A value read back at the end keeps its buffer to itself.
pub fn place(steps: &[Step], origins: &[(Origin, Shape)], read_back: &[Tensor]) -> Placement {
    let mut placement = Placement::default();
    for (id, (origin, shape)) in origins.iter().enumerate() {
        if let Origin::Input(input) = origin {
            let bytes = shape.elements() * 4;
            placement.inputs.push((id as u32, *input, placement.input_bytes, bytes));
            placement.input_bytes += bytes.max(16).next_multiple_of(INPUT_ALIGN);
        }
    }
    let mut last_use: HashMap<u32, usize> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        for t in step.dispatch.tensors(false).chain(step.dispatch.tensors(true)) {
            last_use.insert(t.id, at);
        }
    }
    for t in read_back {
        last_use.insert(t.id, usize::MAX);
    }
    let mut free: Vec<usize> = vec![];
    for (at, step) in steps.iter().enumerate() {
        for t in step.dispatch.tensors(true) {
            if placement.slots.contains_key(&t.id) {
                continue;
            }
            let bytes = (origins[t.id as usize].1.elements() * 4).max(16);
            let slot = take(&mut free, &mut placement.buffers, bytes, last_use[&t.id] == usize::MAX);
            placement.slots.insert(t.id, slot);
        }
        let ends = step.dispatch.tensors(false).chain(step.dispatch.tensors(true)).filter(|t| last_use[&t.id] == at);
        for slot in ends.filter_map(|t| placement.slots.get(&t.id).copied()) {
            if !free.contains(&slot) {
                free.push(slot);
            }
        }
    }
    placement
}

/// The free buffer that fits best; a smaller one grows before a new one is made, unless it must be `alone`.
fn take(free: &mut Vec<usize>, buffers: &mut Vec<u64>, bytes: u64, alone: bool) -> usize {
    let fitting = free.iter().copied().filter(|&s| buffers[s] >= bytes).min_by_key(|&s| buffers[s]);
    let largest = || free.iter().copied().max_by_key(|&s| buffers[s]);
    match fitting.or_else(largest).filter(|_| !alone) {
        Some(slot) => {
            free.retain(|&s| s != slot);
            buffers[slot] = buffers[slot].max(bytes);
            slot
        }
        None => {
            buffers.push(bytes);
            buffers.len() - 1
        }
    }
}
