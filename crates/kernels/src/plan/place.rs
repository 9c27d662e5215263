//! Gives every value a buffer, reusing those whose last reader has run.

use super::Placed;
use crate::graph::record::Origin;
use crate::graph::tensor::{Input, Shape, Tensor};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

/// Alignment of the inputs in the step buffer, in bytes: the largest that WebGPU allows a device to
/// require.
pub const INPUT_ALIGN: u64 = 256;

/// The buffer or the byte offset of every value.
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

/// Assigns buffers. A value that is read back at the end does not share its buffer.
pub fn place(steps: &[Placed], origins: &[(Origin, Shape)], read_back: &[Tensor]) -> Placement {
    let mut placement = Placement::default();
    for (id, (origin, shape)) in origins.iter().enumerate() {
        if let Origin::Input(input) = origin {
            let bytes = shape.elements() * 4;
            placement.inputs.push((id as u32, *input, placement.input_bytes, bytes));
            placement.input_bytes += bytes.max(16).next_multiple_of(INPUT_ALIGN);
        }
    }
    // Large values choose first, so that no small value occupies a large buffer.
    let mut lives = lives(steps, origins, read_back);
    lives.sort_by_key(|life| (Reverse(life.bytes), life.first, life.id));
    let mut taken: Vec<Vec<Range<usize>>> = vec![];
    for life in lives {
        let steps = if life.alone { 0..usize::MAX } else { life.first..life.last + 1 };
        let free =
            |uses: &Vec<Range<usize>>| uses.iter().all(|used| used.end <= steps.start || steps.end <= used.start);
        // Buffers are ordered from large to small, so the last free one is the smallest.
        let slot = taken.iter().rposition(free).unwrap_or_else(|| {
            placement.buffers.push(life.bytes);
            taken.push(vec![]);
            taken.len() - 1
        });
        taken[slot].push(steps);
        placement.slots.insert(life.id, slot);
    }
    placement
}

/// The steps during which a value has its buffer to itself.
struct Life {
    id: u32,
    bytes: u64,
    first: usize,
    last: usize,
    /// Whether no other value may use the buffer, before or after.
    alone: bool,
}

/// The lives of all values that steps write.
fn lives(steps: &[Placed], origins: &[(Origin, Shape)], read_back: &[Tensor]) -> Vec<Life> {
    let mut lives: HashMap<u32, Life> = HashMap::new();
    for (at, placed) in steps.iter().enumerate() {
        for t in placed.dispatch.tensors(true) {
            let bytes = (origins[t.id as usize].1.elements() * 4).max(16);
            let alone = read_back.iter().any(|read| read.id == t.id);
            lives.entry(t.id).or_insert(Life { id: t.id, bytes, first: at, last: at, alone });
        }
        for t in placed.dispatch.tensors(false).chain(placed.dispatch.tensors(true)) {
            if let Some(life) = lives.get_mut(&t.id) {
                life.last = at;
            }
        }
    }
    lives.into_values().collect()
}

#[cfg(test)]
mod tests {
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::elementwise::add::add;
    use crate::elementwise::scale::scale;
    use crate::graph::tensor::{Counts, Lead, Shape, Weight};
    use crate::matmul::matmul::matmul;
    use crate::plan::{PlanOptions, plan};
    use gguf::GgmlType;

    #[test]
    fn a_small_value_that_lives_long_holds_no_large_buffer() {
        let (rows, wide, narrow) = (64, 256, 4);
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
        let weight = |id, rows, cols| Weight::loaded(id, GgmlType::F32, rows, cols);
        let x = rec.host_input(0, Shape::new(Lead::Step, rows, wide));
        let a = scale(&mut rec, x, 2.0);
        let b = scale(&mut rec, a, 2.0);
        let small = matmul(&mut rec, weight(0, narrow, wide), b);
        let c = scale(&mut rec, b, 2.0);
        let d = scale(&mut rec, c, 2.0);
        let e = matmul(&mut rec, weight(1, wide, narrow), small);
        let y = add(&mut rec, d, e);
        rec.output(y);
        let planned = plan(&rec, &Caps::WEBGPU, &PlanOptions::plain()).unwrap();
        // Two large values at a time, the small one, and the value that is read back.
        let [large, small] = [wide, narrow].map(|width| 4 * u64::from(rows * width));
        assert_eq!(planned.placement.buffers, [large, large, large, small]);
    }
}
