//! The results of one operation of a plan, compared with its oracles part by part.

use super::rows::{self, Difference};
use crate::graph::host::Host;
use crate::graph::operation::{Operation, Reference};
use crate::graph::record::Node;
use crate::graph::tensor::{Element, Lead, State, StateKind, Tensor};
use crate::kernel::PEAK;
use crate::language::{Op, Primitive};
use crate::norm::pack_f16::unpacked;

/// What the dispatches of one operation wrote on the device.
pub(super) struct Results {
    /// The values, with their words.
    pub tensors: Vec<(Tensor, Vec<u32>)>,
    /// The rows of the step that the values have, if not all.
    pub rows: Option<Vec<u32>>,
    /// How many times as large as that of the oracle the scale of a row in f16 may be.
    pub larger: f32,
    /// The states, with the bytes of all their sequences.
    pub states: Vec<(State, Vec<u8>)>,
}

/// The worst row so far, and the output or the state that has it.
#[derive(Default)]
struct Worst {
    name: String,
    difference: Difference,
}

impl Worst {
    fn take(&mut self, name: String, of: Difference) {
        if of.error(PEAK) >= self.difference.error(PEAK) {
            self.name = name;
        }
        self.difference.worsen(of);
    }
}

impl Results {
    /// Runs the oracles of the parts in order and compares the results. Returns the name of the
    /// worst result and the worst of all rows.
    ///
    /// The parts after a result read the device's words, not those of the oracle: the kernel
    /// computes with the value that it writes. The last bits of the value decide how its packing
    /// rounds, so with the oracle's bits, a right kernel could differ by whole quants.
    pub fn compare(mut self, parts: &[Node<Primitive>], values: &mut Host<'_>) -> (String, Difference) {
        let mut worst = Worst::default();
        let makes = |part: &Node<Primitive>, t: &Tensor| part.op.io().writes.iter().any(|made| made.id == t.id);
        let appends = |part: &Node<Primitive>| matches!(part.op, Primitive::Op(Op::KvAppend(_)));
        let last_append = parts.iter().rposition(appends).unwrap_or(parts.len() - 1);
        for (at, part) in parts.iter().enumerate() {
            part.op.reference(values);
            let finished = |t: &Tensor| makes(part, t) && !parts[at + 1..].iter().any(|later| makes(later, t));
            for n in (0..self.tensors.len()).filter(|&n| finished(&self.tensors[n].0)) {
                if let Some(of) = self.difference(n, &part.op, values).map(|of| self.placed(n, of)) {
                    worst.take(format!("output {n}"), of);
                }
            }
            for (t, words) in self.tensors.iter_mut().filter(|(t, _)| finished(t)) {
                *values.words(t.id) = std::mem::take(words);
            }
            if at == last_append {
                for (state, bytes) in self.states.drain(..) {
                    worst.take(format!("state {}", state.0), of_state(values.kind(state), values.state(state), &bytes));
                    values.state_mut(state).copy_from_slice(&bytes);
                }
            }
        }
        (worst.name, worst.difference)
    }

    /// The difference `of` of the value at index `n`. If the value holds only some rows of the
    /// step, the index of the row becomes the number of the row in the step.
    fn placed(&self, n: usize, of: Difference) -> Difference {
        let rows = self.rows.as_ref().filter(|_| self.tensors[n].0.shape.lead == Lead::Step);
        Difference { row: rows.and_then(|rows| rows.get(of.row)).map_or(of.row, |row| *row as usize), ..of }
    }

    /// The difference of the value at this index, which the part made. `None` if it is compared
    /// with another value, or is memory that the dispatches of one operation share.
    fn difference(&self, n: usize, part: &Primitive, values: &Host<'_>) -> Option<Difference> {
        let (t, got) = (self.tensors[n].0, &self.tensors[n].1);
        let expected = values.u32(t);
        if expected.is_empty() && !got.is_empty() {
            return None;
        }
        match (Halves::of(part), part) {
            (Some(halves), _) if halves.scales.id == t.id => None,
            (Some(Halves { scales, k, slab }), _) => {
                let of_scales = values.f32(scales);
                let written = self.tensors.iter().find(|(other, _)| other.id == scales.id);
                let got_scales = written.map_or(of_scales, |(_, words)| bytemuck::cast_slice(words));
                let [of, got] =
                    [(of_scales, expected), (got_scales, got)].map(|(scales, words)| unpacked(scales, words, k, slab));
                Some(rows::of_scaled_halves(k, [of_scales, got_scales], self.larger, &of, &got))
            }
            (None, Primitive::Op(Op::Sample(_))) => Some(rows::of_draws(expected, got)),
            (None, _) => Some(of_tensor(t, expected, got)),
        }
    }
}

/// The scales and the halves that a part makes: rows of `k` elements in f16, whole or in slabs.
struct Halves {
    scales: Tensor,
    k: usize,
    slab: u32,
}

impl Halves {
    fn of(part: &Primitive) -> Option<Self> {
        match part {
            Primitive::PackF16(pack) => {
                Some(Self { scales: pack.scales, k: pack.x.shape.width() as usize, slab: pack.slab })
            }
            Primitive::GatherSlots(gather) => {
                Some(Self { scales: gather.scales, k: gather.k() as usize, slab: gather.slab() })
            }
            Primitive::LevelF16(level) => {
                Some(Self { scales: level.scales, k: 2 * level.halves.shape.width() as usize, slab: 0 })
            }
            _ => None,
        }
    }
}

/// Compares a tensor row by row.
pub(crate) fn of_tensor(t: Tensor, expected: &[u32], got: &[u32]) -> Difference {
    let width = t.shape.width() as usize;
    match t.element {
        Element::F32 => rows::of_floats(width, bytemuck::cast_slice(expected), bytemuck::cast_slice(got)),
        Element::U32 => rows::of_words(width, expected, got),
        Element::F16 => rows::of_halves(width, expected, got),
        Element::Q8 => rows::of_packed(width / 3 * 8, expected, got),
    }
}

/// Compares a state row by row. Words are ids, or f32 that training keeps.
pub(crate) fn of_state(kind: StateKind, expected: &[u8], got: &[u8]) -> Difference {
    let words = |bytes: &[u8]| -> Vec<u32> { bytemuck::pod_collect_to_vec(bytes) };
    match kind {
        StateKind::Kv { ty, width, .. } => rows::of_state(ty, width as usize, expected, got),
        StateKind::Tokens => rows::of_words(1, &words(expected), &words(got)),
        StateKind::Words(all) => {
            rows::of_floats(all as usize, bytemuck::cast_slice(&words(expected)), bytemuck::cast_slice(&words(got)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PEAK, Results};
    use crate::elementwise::add::add;
    use crate::elementwise::geglu::geglu;
    use crate::graph::host::{Host, Store};
    use crate::graph::record::Recorder;
    use crate::graph::tensor::{Counts, Lead, Shape, State, StateKind, Weight};
    use crate::kernel::random::Gen;
    use crate::language::Primitive;
    use crate::matmul::matmul_vec_q8::matmul_q8;
    use crate::norm::pack_q8::pack_q8;
    use crate::norm::rms_norm::rms_norm;
    use crate::testing::parity::Case;
    use gguf::GgmlType;

    /// The store of operations without weights and states.
    struct Nothing;

    impl Store for Nothing {
        fn vector(&self, _: Weight) -> &[f32] {
            unreachable!()
        }

        fn matrix(&self, _: Weight) -> cpu_ref::Rows<'_> {
            unreachable!()
        }

        fn kind(&self, _: State) -> StateKind {
            unreachable!()
        }

        fn rows(&self, _: State) -> u32 {
            unreachable!()
        }

        fn state(&self, _: State) -> &[u8] {
            unreachable!()
        }

        fn state_mut(&mut self, _: State) -> &mut [u8] {
            unreachable!()
        }
    }

    #[test]
    fn a_part_reads_what_the_device_wrote_before_it() {
        let (k, mut g) = (1 << 14, Gen::new(3));
        let mut rec: Recorder<Primitive> = Recorder::new(Counts { step: 1, out: 0 }, &[]);
        let [a, b] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, 1, k)));
        let h = add(&mut rec, a, b);
        let packed = pack_q8(&mut rec, h);
        let [of_a, of_b] = [0, 1].map(|_| g.units(k, 1.0));
        // The device's sum has an error that f32 explains. It moves some quants to a neighbour.
        let of_h: Vec<f32> = of_a.iter().zip(&of_b).map(|(a, b)| (a + b) * (1.0 + 8e-6 * g.unit())).collect();
        let mut words = vec![0; k as usize / 8 * 3];
        cpu_ref::pack_q8(&of_h, k as usize, &mut words);
        let mut store = Nothing;
        let mut host = Host::new(Counts { step: 1, out: 0 }, &mut store, rec.origins.len());
        for (t, values) in [(a, of_a), (b, of_b)] {
            *host.words(t.id) = bytemuck::cast_vec(values);
        }
        let got = Results {
            tensors: vec![(h, bytemuck::cast_vec(of_h)), (packed, words)],
            rows: None,
            larger: 2.0,
            states: vec![],
        };
        let (name, difference) = got.compare(&rec.nodes, &mut host);
        assert_eq!((name.as_str(), difference.turned), ("output 0", 0));
        assert!(difference.nmse > 1e-12 && difference.within(1e-10, PEAK), "{difference:?}");
    }

    /// Two products of a packed sum whose summands cancel to a tenth of their size. The last bits
    /// of the summands decide several quants of the sum.
    fn cancelling(seed: u64) -> Case {
        let (cols, n, eps) = (256, 352, 1e-6);
        let (mut g, mut case) = (Gen::new(seed), Case::new(1));
        let b = g.units(cols, 2.0);
        let mut normed = vec![0.0; b.len()];
        cpu_ref::rms_norm(&b, None, b.len(), f64::from(eps), &mut normed);
        let a = normed.iter().map(|x| 0.1 * g.unit() - x).collect();
        let [a, b] = [a, b].map(|values| case.given(Shape::new(Lead::Step, 1, cols), values));
        let normed = rms_norm(&mut case.rec, b, None, eps);
        let h = add(&mut case.rec, a, normed);
        case.expect(h);
        let packed = pack_q8(&mut case.rec, h);
        let [gate, up] = [0, 1].map(|_| case.weight(&mut g, GgmlType::Q8_0, n, cols));
        let [gate, up] = [gate, up].map(|w| matmul_q8(&mut case.rec, w, packed));
        let y = geglu(&mut case.rec, gate, up);
        let y = pack_q8(&mut case.rec, y);
        case.expect(y);
        case
    }

    #[test]
    fn the_packing_of_a_sum_that_the_kernel_writes_is_that_of_its_own_bits() {
        let device = crate::device::tests::device();
        for seed in 0..32 {
            let outcome = cancelling(seed).compare(&device, true).expect("a run");
            let labels: Vec<_> = outcome.shaders.iter().map(|shader| shader.variant.name).collect();
            assert_eq!(labels, ["norm_add_matmul_vec_glu"]);
            let worst = &outcome.worst;
            assert!(worst.holds() && worst.near == 0 && worst.bound == 1e-10, "seed {seed}: {worst:?}");
        }
    }
}
