//! Agreement of a plan with the host: every operation runs on the device, then by its oracle on
//! the host, from the inputs that the device read.

mod chosen;
mod copies;
pub(crate) mod results;
pub mod rows;

use super::cpu::{CpuPlan, input_words};
use super::gpu::GpuPlan;
use super::watch::Passed;
use super::{Compiled, Outputs, Plan, Watch};
use crate::error::Error;
use crate::exec::states::States;
use crate::exec::weights::Weights;
use crate::graph::host::Host;
use crate::graph::input::StepInput;
use crate::graph::operation::Operation;
use crate::graph::record::{Node, Origin, Phase};
use crate::graph::tensor::{Place, State, StateKind, Tensor, Weight};
use crate::kernel::PEAK;
use crate::kernel::dispatch::{Arg, When};
use crate::language::{Op, Primitive};
use crate::norm::level_f16::{COARSER, LEVEL_F16};
use crate::plan::{Placed, Planned};
use chosen::{Chosen, InSlots};
use copies::{Copies, OfMirror};
use cpu_ref::KvType;
use results::Results;
use rows::Difference;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The host's side of a comparison: the weights of the same model on the CPU, and copies of the
/// states.
pub struct Mirror {
    weights: Arc<Weights>,
    copies: Option<Copies>,
    /// The kernels and params that were compared, if none is compared twice.
    once: Option<HashSet<Compared>>,
    /// The seed of a mirror that [samples](Mirror::sampling).
    seed: Option<u64>,
    /// The plan whose operations are the oracles, if it is not the device's own.
    expected: Option<Planned>,
}

/// What makes two operations equal: kernels and params, the kinds of the states, and the positions
/// and sequences that decide what is read of them.
type Compared = (Vec<u8>, Vec<StateKind>, Vec<u32>);

/// How the outputs of one operation of a plan on the device agree with its oracles on the host.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The kernels of the operation, written as in a printed plan.
    pub kernels: Vec<String>,
    pub layer: Option<u32>,
    /// The rows that the host computed, if not all.
    pub rows: Option<Vec<u32>>,
    /// The output or the state with the worst row.
    pub worst: String,
    /// The worst of all rows of all outputs.
    pub difference: Difference,
    /// Activations between the parts of the operation that the host cannot see, and that an f32
    /// error can move to the neighbouring quant of 8 bits.
    pub near: usize,
    /// The largest NMSE of a row: that of the kernels, or [`ROUNDED`] if activations are near a
    /// neighbour. An operation that appends a row to a rounded state and reads it again may compute
    /// the row twice. Its bound is the bound of the state's rounding.
    pub bound: f64,
    /// The largest difference of an element, in units of the root of the bound.
    pub peak: f64,
}

/// The largest NMSE of a row if one of its activations was rounded to a neighbour: the error of
/// rounding to 8 bits itself.
pub const ROUNDED: f64 = 1e-4;

/// The largest NMSE of a row if one of its values in f16 was rounded to a neighbour.
const ROUNDED_F16: f64 = 1e-6;

/// The largest bound of operations whose rounded values are counted. A value with a larger error
/// than the steps of its type is often rounded to a neighbour, or further.
const FINER: f64 = 1e-9;

impl Agreement {
    /// The largest NMSE of a row, or the NMSE of a bound that the largest difference of an element
    /// just meets.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.difference.error(self.peak)
    }

    /// Whether every row and every element is within the bound, and few values were rounded to a
    /// neighbour.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.error() <= self.bound && (self.bound > FINER || self.difference.few_turned())
    }

    /// The ratio of the error to the bound; infinite if the operation does not agree.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.holds() { self.error() / self.bound.max(f64::MIN_POSITIVE) } else { f64::INFINITY }
    }
}

impl Mirror {
    /// A mirror of a model whose weights are listed in the same order as those of the plan.
    #[must_use]
    pub fn new(weights: Arc<Weights>) -> Self {
        Self { weights, copies: None, once: None, seed: None, expected: None }
    }

    /// This mirror, which compares an operation only if no equal operation was compared before: an
    /// operation with the same kernels and params, in a step of as many rows, and at the same
    /// positions if it reads or writes a state. So one layer of each kind is compared instead of
    /// all layers.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: Some(HashSet::new()), ..self }
    }

    /// This mirror as [`Mirror::once`] makes it, with less work for many steps of large models:
    ///
    /// * Of an operation with more than 64 rows, the host computes 16: the first, the last, rows at
    ///   the borders of tiles, and some that `seed` draws.
    /// * In steps that do not begin at position 0, an operation that reads a cache gets a cache
    ///   full of rows that `seed` draws. They are mixed from rows that the cache has.
    /// * A step ends behind the last operation that is compared. Its outputs are not those of a
    ///   step, and caches of other layers hold anything.
    #[must_use]
    pub fn sampling(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self.once() }
    }

    /// This mirror, whose oracles are the operations of the plan `expected`, if there is one. That
    /// plan has the shape of the device's plan.
    #[cfg(feature = "testing")]
    pub(crate) fn expecting(self, expected: Option<Planned>) -> Self {
        Self { expected, ..self }
    }

    /// Whether to compare these dispatches.
    fn wants(&mut self, steps: &[&Placed], states: &States, input: &StepInput) -> bool {
        let Some(once) = &mut self.once else { return true };
        let counts = input.counts();
        let mut kernels: Vec<u8> = [counts.step, counts.out].iter().flat_map(|count| count.to_le_bytes()).collect();
        let (mut kinds, mut places) = (vec![], vec![]);
        for placed in steps {
            kernels.extend(placed.shader.label().bytes().chain(placed.dispatch.params.iter().copied()));
            let of_states = placed
                .dispatch
                .args
                .iter()
                .filter_map(|arg| if let Arg::State(state) = arg { Some(*state) } else { None });
            let before = kinds.len();
            kinds.extend(of_states.map(|state| states.kind(state)));
            if kinds.len() > before || placed.dispatch.when != When::Always {
                places = [&input.positions[..], &input.sequences].concat();
            }
        }
        once.insert((kernels, kinds, places))
    }

    /// The host's copies of these states.
    fn copies(&mut self, states: &States) -> &mut Copies {
        let copies = self.copies.take().filter(|copies| copies.fit(states)).unwrap_or_else(|| Copies::new(states));
        self.copies.insert(copies)
    }
}

impl Plan {
    /// Runs a step as [`Plan::run_async`] does, one operation at a time, and computes each
    /// operation on the host as well, from the inputs that the device read. Returns the outputs of
    /// the device and the agreement of every operation. On the CPU there is nothing to compare.
    ///
    /// # Errors
    /// As [`Plan::run_async`]; a cancel takes effect between operations. [`Error::OutOfMemory`] for
    /// the copy of the states.
    ///
    /// # Panics
    /// If the weights of `mirror` are of another model.
    pub async fn agree_async(
        &mut self,
        mirror: &mut Mirror,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<(Outputs, Vec<Agreement>), Error> {
        match &mut self.0 {
            Compiled::Gpu(plan) => plan.agree(mirror, states, input, watch).await,
            Compiled::Cpu(plan) => Ok((plan.run(states, input, watch).await?, vec![])),
        }
    }
}

/// Operations of a plan that are compared together. The last operation finishes the work of the
/// operations before it.
struct Group {
    steps: Vec<usize>,
    parts: Range<usize>,
    layer: Option<u32>,
}

/// The words of values, by their ids.
type Kept = HashMap<u32, Vec<u32>>;

impl GpuPlan {
    async fn agree(
        &mut self,
        mirror: &mut Mirror,
        states: &mut States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<(Outputs, Vec<Agreement>), Error> {
        self.prepare(states, input).await?;
        let host = CpuPlan::reference(mirror.expected.as_ref().unwrap_or(self.planned()), Arc::clone(&mirror.weights));
        mirror.copies(states).all_changed();
        let groups = self.groups(input);
        let of = |group: &Group| group.steps.iter().map(|&at| &self.planned().dispatches[at]).collect::<Vec<_>>();
        let wanted: Vec<bool> = groups.iter().map(|group| mirror.wants(&of(group), states, input)).collect();
        let end = match mirror.seed {
            Some(_) => wanted.iter().rposition(|wanted| *wanted).map_or(0, |last| last + 1),
            None => groups.len(),
        };
        let unbound: Vec<Tensor> = groups
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted)
            .flat_map(|(group, _)| self.unbound(group, &host))
            .collect();
        let (mut agreements, mut kept) = (vec![], Kept::new());
        for (n, (group, wanted)) in groups.iter().zip(&wanted).enumerate().take(end) {
            watch.at(Passed { phase: Phase::Forward, done: n as u32, total: end as u32 })?;
            if *wanted {
                agreements.push(self.compare(group, &host, mirror, &kept, (states, input)).await?);
            } else {
                self.run_steps(&group.steps, input, &[], &[]).await?;
                let written = self.states_of(&group.steps, true);
                let copies = mirror.copies(states);
                written.into_iter().for_each(|state| copies.changed(state));
            }
            let keep: Vec<Tensor> = unbound.iter().copied().filter(|t| self.binds(group, t.id, true)).collect();
            if !keep.is_empty() {
                let [words, _] = self.run_steps(&[], input, &keep, &[]).await?;
                kept.extend(keep.iter().map(|t| t.id).zip(words));
            }
        }
        let read_back = self.planned().read_back.clone();
        let [outputs, _] = self.run_steps(&[], input, &read_back, &[]).await?;
        Ok((Outputs(outputs), agreements))
    }

    /// The operations that run in this step. An operation without parts leaves work to an operation
    /// behind it.
    fn groups(&self, input: &StepInput) -> Vec<Group> {
        let (mut groups, mut steps) = (vec![], vec![]);
        for node in &self.planned().nodes {
            steps
                .extend(node.dispatches.clone().filter(|&at| self.planned().dispatches[at].dispatch.when.holds(input)));
            if !node.parts.is_empty() {
                groups.push(Group {
                    steps: std::mem::take(&mut steps),
                    parts: node.parts.clone(),
                    layer: node.stage.layer,
                });
            }
        }
        groups
    }

    /// Whether a dispatch of the group writes a tensor, or reads it.
    fn binds(&self, group: &Group, id: u32, writes: bool) -> bool {
        group.steps.iter().any(|&at| self.planned().dispatches[at].dispatch.tensors(writes).any(|t| t.id == id))
    }

    /// The values that the oracles of a group read and its dispatches do not. The memory of such a
    /// value may have another value when the group runs: products of experts read lists that were
    /// made of the experts' ids, and their oracle reads the ids.
    fn unbound(&self, group: &Group, host: &CpuPlan) -> Vec<Tensor> {
        let mut read = reads(&host.nodes[group.parts.clone()], host);
        read.retain(|t| {
            host.origins[t.id as usize].0 == Origin::Made
                && !self.binds(group, t.id, false)
                && !self.binds(group, t.id, true)
        });
        read
    }

    /// Runs a group on the device and on the host.
    async fn compare(
        &self,
        group: &Group,
        host: &CpuPlan,
        mirror: &mut Mirror,
        kept: &Kept,
        (states, input): (&mut States, &StepInput),
    ) -> Result<Agreement, Error> {
        let parts = &host.nodes[group.parts.clone()];
        let of: Vec<&Placed> = group.steps.iter().map(|&at| &self.planned().dispatches[at]).collect();
        let weights = Arc::clone(&mirror.weights);
        let seed = mirror.seed;
        let copies = mirror.copies(states);
        for state in self.states_of(&group.steps, false) {
            if let Some(seed) = seed.filter(|_| input.positions.iter().all(|&position| position > 0)) {
                copies.draw(states, state, seed).await?;
            }
            copies.refresh(states, state).await?;
        }
        let (read, written) = (reads(parts, host), self.written(&group.steps, parts));
        let is_made = |t: &Tensor| host.origins[t.id as usize].0 == Origin::Made;
        let made: Vec<Tensor> = read.iter().copied().filter(|t| is_made(t) && !kept.contains_key(&t.id)).collect();
        let [before, after] = self.run_steps(&group.steps, input, &made, &written).await?;
        let mut of_states = vec![];
        for state in self.states_of(&group.steps, true) {
            of_states.push((state, copies::whole(states, state).await?));
        }

        let chosen = seed.and_then(|seed| Chosen::of(parts, input, seed ^ group.parts.start as u64));
        let some = chosen.as_ref().map_or_else(|| input.clone(), |chosen| chosen.input(input));
        let slots = InSlots::of(parts)
            .and_then(|of| Some((before[made.iter().position(|t| t.id == of.slots().id)?].clone(), of)));
        let taken = |t: Tensor, words: Vec<u32>| match &chosen {
            Some(chosen) => {
                chosen.take(t, host.origins[t.id as usize].1, &words, slots.as_ref().map(|(words, of)| (of, &**words)))
            }
            None => words,
        };
        if let Some(chosen) = &chosen {
            copies.take_over(chosen, parts, &of_states, input);
        }
        let mut store = OfMirror { weights: &weights, copies };
        let mut values = Host::new(some.counts(), &mut store, host.origins.len());
        values.judge(&input.positions, &input.sequences);
        for (t, words) in made.iter().zip(before) {
            *values.words(t.id) = taken(*t, words);
        }
        for (t, words) in read.iter().filter_map(|t| Some((t, kept.get(&t.id)?))) {
            *values.words(t.id) = taken(*t, words.clone());
        }
        for t in read {
            if let (Origin::Input(kind), shape) = host.origins[t.id as usize] {
                *values.words(t.id) = input_words(kind, shape, &some, &host.ropes);
            }
        }
        let levels = of.iter().any(|placed| std::ptr::eq(placed.dispatch.variant.kernel, &LEVEL_F16));
        let tensors = written.iter().zip(after).map(|(t, words)| (*t, taken(*t, words))).collect();
        let rows = chosen.as_ref().map(|chosen| chosen.rows().to_vec());
        let got =
            Results { tensors, rows: rows.clone(), larger: if levels { COARSER } else { 2.0 }, states: of_states };
        let (worst, difference) = got.compare(parts, &mut values);
        let near = unseen(parts, &written).map(|t| values.near(t)).sum();
        let bounds = of.iter().map(|placed| placed.dispatch.variant.kernel.nmse);
        let bound = bounds.fold(if near > 0 { ROUNDED } else { read_again(parts, states) }, f64::max);
        let peak = of.iter().map(|placed| placed.dispatch.variant.peak).fold(PEAK, f64::max);
        let kernels = of.iter().map(|placed| placed.shader.label()).collect();
        Ok(Agreement { kernels, layer: group.layer, rows, worst, difference, near, bound, peak })
    }

    /// The values that these dispatches write and that a part makes. Values between the dispatches
    /// of an operation are gone at its end.
    fn written(&self, steps: &[usize], parts: &[Node<Primitive>]) -> Vec<Tensor> {
        let steps = || steps.iter().map(|&at| &self.planned().dispatches[at]);
        let results: HashSet<u32> = steps().flat_map(|placed| placed.op.io().writes).map(|t| t.id).collect();
        let made: HashSet<u32> = parts.iter().flat_map(|part| part.op.io().writes).map(|t| t.id).collect();
        let mut written: Vec<Tensor> = steps().flat_map(|placed| placed.dispatch.tensors(true)).collect();
        written.retain(|t| made.contains(&t.id) && results.contains(&t.id));
        written.sort_by_key(|t| t.id);
        written.dedup_by_key(|t| t.id);
        written
    }

    /// The states that these dispatches bind, or only those that they write.
    fn states_of(&self, steps: &[usize], written: bool) -> Vec<State> {
        let mut states = vec![];
        for &at in steps {
            let dispatch = &self.planned().dispatches[at].dispatch;
            for ((_, access), arg) in dispatch.variant.kernel.bindings.iter().zip(&dispatch.args) {
                let state = match arg {
                    Arg::State(state) => *state,
                    Arg::Weight(Weight { place: Place::State(state), .. }, _) => *state,
                    _ => continue,
                };
                if (access.writes() || !written) && !states.contains(&state) {
                    states.push(state);
                }
            }
        }
        states
    }
}

/// The values that these parts read and do not make before, each once and whole.
fn reads(parts: &[Node<Primitive>], host: &CpuPlan) -> Vec<Tensor> {
    let (mut reads, mut made) = (vec![], HashSet::new());
    for part in parts {
        let io = part.op.io();
        for t in io.reads {
            if !made.contains(&t.id) && !reads.iter().any(|read: &Tensor| read.id == t.id) {
                reads.push(Tensor { shape: host.origins[t.id as usize].1, first: 0, ..t });
            }
        }
        made.extend(io.writes.iter().map(|t| t.id));
    }
    reads
}

/// The packed activations that no dispatch writes, and whose f32 values the host computes with
/// other errors than the device: values that a dispatch writes are the device's own, and a sum of
/// two of them and their product with a vector are exact.
fn unseen<'a>(parts: &'a [Node<Primitive>], written: &'a [Tensor]) -> impl Iterator<Item = Tensor> + 'a {
    let maker = |t: Tensor| parts.iter().find(|part| part.op.io().writes.iter().any(|made| made.id == t.id));
    let seen = move |t: Tensor| maker(t).is_none() || written.iter().any(|of| of.id == t.id);
    let exact = move |t: Tensor| match maker(t).map(|part| &part.op) {
        Some(Primitive::Op(Op::Add(sum))) => seen(t) || sum.io().reads.into_iter().all(seen),
        _ => seen(t),
    };
    parts.iter().filter_map(move |part| match &part.op {
        Primitive::PackQ8(pack) if !exact(pack.norm.as_ref().map_or(pack.x, |norm| norm.x)) => {
            Some(pack.packed).filter(|packed| !written.iter().any(|t| t.id == packed.id))
        }
        _ => None,
    })
}

/// The bound of rounding of the states that these parts append to, if they also attend; else 0.
fn read_again(parts: &[Node<Primitive>], states: &States) -> f64 {
    if !parts.iter().any(|part| matches!(part.op, Primitive::Op(Op::Attention(_)) | Primitive::AttentionFlash(_))) {
        return 0.0;
    }
    let bound = |part: &Node<Primitive>| match &part.op {
        Primitive::Op(Op::KvAppend(append)) => match states.kind(append.state.k).row().0 {
            KvType::F32 => 0.0,
            KvType::F16 => ROUNDED_F16,
            KvType::Q8_0 => ROUNDED,
        },
        _ => 0.0,
    };
    parts.iter().map(bound).fold(0.0, f64::max)
}
