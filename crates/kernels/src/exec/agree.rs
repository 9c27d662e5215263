//! Agreement of a plan with the host: every operation runs on the device, then by its oracle on
//! the host, from the inputs that the device read.

pub mod rows;

use super::cpu::{CpuPlan, OnHost, input_words};
use super::gpu::GpuPlan;
use super::{Outputs, Plan, Progress, Watch};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::states::States;
use crate::exec::weights::Weights;
use crate::graph::host::Host;
use crate::graph::input::StepInput;
use crate::graph::operation::{Operation, Reference};
use crate::graph::record::{Node, Origin, Phase};
use crate::graph::tensor::{Element, State, StateKind, Tensor};
use crate::kernel::dispatch::Arg;
use crate::lower::pack::pack_f16::unpacked;
use crate::lower::primitive::Primitive;
use crate::ops::Op;
use crate::plan::{Planned, Step};
use cpu_ref::KvType;
use rows::Difference;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The host's side of a comparison: the weights of the same model on [`Executor::Cpu`], and a copy
/// of the states.
pub struct Mirror {
    weights: Arc<Weights>,
    states: Option<States>,
    /// The kernels and params that were compared, if none is compared twice.
    once: Option<HashSet<Vec<u8>>>,
    /// The plan whose operations are the oracles, if it is not the device's own.
    expected: Option<Planned>,
}

/// How the outputs of one operation of a plan on the device agree with its oracles on the host.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The kernels of the operation, written as in a printed plan.
    pub kernels: Vec<String>,
    pub layer: Option<u32>,
    /// The output or the state with the worst row.
    pub worst: String,
    /// The worst of all rows of all outputs.
    pub difference: Difference,
    /// Activations between the parts of the operation that the host cannot see, and that an f32
    /// error can move to the neighbouring quant of 8 bits.
    pub near: usize,
    /// The largest NMSE of a row: that of the kernels, or [`ROUNDED`] if activations are near a
    /// neighbour. An operation that appends a row to a rounded state and reads it again may compute
    /// the row twice; its bound is that of the state's rounding.
    pub bound: f64,
}

/// The largest NMSE of a row if one of its activations was rounded to a neighbour: the error of
/// rounding to 8 bits itself.
pub const ROUNDED: f64 = 1e-4;

/// The same for f16.
const ROUNDED_F16: f64 = 1e-6;

/// The largest bound of operations whose rounded values are counted. A value with a larger error
/// than the steps of its type is often rounded to a neighbour, or further.
const FINER: f64 = 1e-9;

impl Agreement {
    /// Whether every row is within the bound, and few values were rounded to a neighbour.
    #[must_use]
    pub fn holds(&self) -> bool {
        if self.bound > FINER { self.difference.nmse <= self.bound } else { self.difference.within(self.bound) }
    }
}

impl Mirror {
    /// A mirror of a model whose weights are listed in the same order as those of the plan.
    #[must_use]
    pub fn new(weights: Arc<Weights>) -> Self {
        Self { weights, states: None, once: None, expected: None }
    }

    /// The same, where an operation is compared only if no operation with the same kernels and
    /// params was compared before: one layer of each kind instead of all.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: Some(HashSet::new()), ..self }
    }

    /// The same with the operations of another plan of the same shape as oracles.
    #[cfg(feature = "testing")]
    pub(crate) fn expecting(self, expected: Option<Planned>) -> Self {
        Self { expected, ..self }
    }

    /// Whether to compare these dispatches.
    fn wants(&mut self, steps: &[&Step]) -> bool {
        let key = steps.iter().flat_map(|step| step.shader.label().into_bytes().into_iter().chain(step.dispatch.params.iter().copied()));
        self.once.as_mut().is_none_or(|once| once.insert(key.collect()))
    }

    /// Copies the states of a device.
    async fn copy(&mut self, states: &States) -> Result<(), Error> {
        let fits = |mirror: &States| mirror.capacity() == states.capacity() && mirror.sequences() == states.sequences();
        if !self.states.as_ref().is_some_and(fits) {
            let kinds: Vec<StateKind> = (0..states.len()).map(|n| states.kind(states.state(n))).collect();
            self.states = Some(States::new_async(&Executor::Cpu, &kinds, states.sequences(), states.capacity()).await?);
        }
        let mirror = self.states.as_mut().expect("just made");
        for n in 0..states.len() {
            let state = states.state(n);
            mirror.host_mut(state).copy_from_slice(&whole(states, state).await?);
        }
        Ok(())
    }
}

/// The bytes of a state, all sequences one after the other.
async fn whole(states: &States, state: State) -> Result<Vec<u8>, Error> {
    let kind = states.kind(state);
    let mut bytes = Vec::with_capacity(states.rows(state) as usize * kind.row_bytes());
    for sequence in 0..kind.sequences(states.sequences()) {
        let each = |piece: &[u8]| -> Result<(), Error> {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        states.read_async(state, sequence, 0..states.rows(state), each).await?;
    }
    Ok(bytes)
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
        match self {
            Self::Gpu(plan) => plan.agree(mirror, states, input, watch).await,
            Self::Cpu(plan) => Ok((plan.run(states, input, watch)?, vec![])),
        }
    }
}

impl GpuPlan {
    async fn agree(
        &mut self,
        mirror: &mut Mirror,
        states: &States,
        input: &StepInput,
        watch: Watch<'_>,
    ) -> Result<(Outputs, Vec<Agreement>), Error> {
        mirror.copy(states).await?;
        self.prepare(states, input).await?;
        let weights = Arc::clone(&mirror.weights);
        let host = CpuPlan::reference(mirror.expected.as_ref().unwrap_or(self.planned()), Arc::clone(&weights));
        let mut mirrored = mirror.states.take().expect("copied");
        let mut store = OnHost { weights: &weights, states: &mut mirrored };
        let mut values = Host::new(input.counts(), &mut store, host.origins.len());
        for (id, (origin, shape)) in host.origins.iter().enumerate() {
            if let Origin::Input(kind) = origin {
                *values.words(id as u32) = input_words(*kind, *shape, input, &host.ropes);
            }
        }
        // The dispatches of operations whose work an operation behind them finishes.
        let (mut agreements, mut unfinished) = (vec![], vec![]);
        let operations = self.planned().nodes.len() as u32;
        for (done, node) in (0..).zip(self.planned().nodes.clone()) {
            watch.at(Progress { phase: Phase::Forward, done, total: operations })?;
            let steps: Vec<usize> = node.steps.clone().filter(|&at| self.planned().steps[at].dispatch.when.holds(input)).collect();
            let parts = &host.nodes[node.parts.clone()];
            let made: HashMap<u32, &Primitive> =
                parts.iter().flat_map(|part| part.op.io().writes.into_iter().map(|t| (t.id, &part.op))).collect();
            let mut written: Vec<Tensor> = steps.iter().flat_map(|&at| self.planned().steps[at].dispatch.tensors(true)).collect();
            // Values between the dispatches of an operation are gone at its end.
            let results: Vec<u32> = steps.iter().flat_map(|&at| self.planned().steps[at].op.io().writes).map(|t| t.id).collect();
            written.retain(|t| made.contains_key(&t.id) && results.contains(&t.id));
            written.sort_by_key(|t| t.id);
            written.dedup_by_key(|t| t.id);
            let got = self.run_steps(&steps, input, &written).await?;
            unfinished.extend(steps.iter().copied());
            let of: Vec<&Step> = unfinished.iter().map(|&at| &self.planned().steps[at]).collect();
            let finished = !parts.is_empty();
            let compares = finished && mirror.wants(&of);
            if compares {
                parts.iter().for_each(|Node { op, .. }| op.reference(&mut values));
            }
            let mut of_states = vec![];
            for state in self.written_states(&steps) {
                let got = whole(states, state).await?;
                if compares {
                    of_states.push((state, compared_states(states.kind(state), values.state(state), &got)));
                }
                values.state_mut(state).copy_from_slice(&got);
            }
            // Attention in the same operation reads what the state holds, neighbours included.
            if of_states.iter().any(|(_, of)| of.turned > 0) {
                let again = parts.iter().filter(|part| !matches!(part.op, Primitive::Op(Op::KvAppend(_))));
                again.for_each(|Node { op, .. }| op.reference(&mut values));
            }
            let (mut difference, mut worst) = (Difference::default(), String::new());
            let mut take = |name: String, of: Difference| {
                if of.nmse >= difference.nmse {
                    worst = name;
                }
                difference.worsen(of);
            };
            let got: HashMap<u32, Vec<u32>> = written.iter().map(|t| t.id).zip(got).collect();
            for (n, t) in written.iter().enumerate().filter(|_| compares) {
                let (expected, got_words) = (values.u32(*t), &got[&t.id]);
                // Memory that the dispatches of one operation share is no result of it.
                if expected.is_empty() && !got_words.is_empty() {
                    continue;
                }
                let of = match (halves_of(parts, *t), made[&t.id]) {
                    // Compared with the halves.
                    (Some(halves), _) if halves.scales.id == t.id => continue,
                    (Some(Halves { scales, k, slab, .. }), _) => {
                        let scale_words = got.get(&scales.id).map_or_else(|| values.u32(scales), Vec::as_slice);
                        let floats = |scales: &[u32], words: &[u32]| unpacked(bytemuck::cast_slice(scales), words, k, slab);
                        let scales = values.f32(scales);
                        rows::of_scaled_halves(k, scales, &floats(bytemuck::cast_slice(scales), expected), &floats(scale_words, got_words))
                    }
                    (None, Primitive::Op(Op::Sample(_))) => rows::of_draws(expected, got_words),
                    (None, _) => compared(*t, expected, got_words),
                };
                take(format!("output {n}"), of);
            }
            got.into_iter().for_each(|(id, words)| *values.words(id) = words);
            of_states.into_iter().for_each(|(state, of)| take(format!("state {}", state.0), of));
            for &id in &host.ends[node.parts.clone()].concat() {
                *values.words(id) = vec![];
            }
            if compares {
                let kernels = of.iter().map(|step| step.shader.label()).collect();
                let near = unseen(parts, &written).map(|t| values.near(t)).sum();
                let bounds = of.iter().map(|step| step.dispatch.variant.kernel.nmse);
                let bound = bounds.fold(if near > 0 { ROUNDED } else { read_again(parts, states) }, f64::max);
                agreements.push(Agreement { kernels, layer: node.stage.layer, worst, difference, near, bound });
            }
            if finished {
                unfinished.clear();
            }
        }
        let outputs = host.read_back.iter().map(|t| values.words(t.id).clone()).collect();
        mirror.states = Some(mirrored);
        Ok((Outputs(outputs), agreements))
    }

    /// The states that these dispatches write.
    fn written_states(&self, steps: &[usize]) -> Vec<State> {
        let mut states = vec![];
        for &at in steps {
            let dispatch = &self.planned().steps[at].dispatch;
            for ((_, access), arg) in dispatch.variant.kernel.bindings.iter().zip(&dispatch.args) {
                match arg {
                    Arg::State(state) if access.writes() && !states.contains(state) => states.push(*state),
                    _ => {}
                }
            }
        }
        states
    }
}

/// The packed activations that no dispatch writes, and whose f32 values the host computes with
/// other errors than the device: a sum of two values and the product with a vector have none.
fn unseen<'a>(parts: &'a [Node<Primitive>], written: &'a [Tensor]) -> impl Iterator<Item = Tensor> + 'a {
    let maker = |t: Tensor| parts.iter().find(|part| part.op.io().writes.iter().any(|made| made.id == t.id));
    let exact = move |t: Tensor| match maker(t).map(|part| &part.op) {
        None => true,
        Some(Primitive::Op(Op::Add(sum))) => sum.io().reads.iter().all(|t| maker(*t).is_none()),
        Some(_) => false,
    };
    parts.iter().filter_map(move |part| match &part.op {
        Primitive::PackQ8(pack) if !exact(pack.norm.as_ref().map_or(pack.x, |norm| norm.x)) => {
            Some(pack.packed).filter(|packed| !written.iter().any(|t| t.id == packed.id))
        }
        _ => None,
    })
}

/// Compares a state row by row. Words are ids, or f32 that training keeps.
fn compared_states(kind: StateKind, expected: &[u8], got: &[u8]) -> Difference {
    let words = |bytes: &[u8]| -> Vec<u32> { bytemuck::pod_collect_to_vec(bytes) };
    match kind {
        StateKind::Kv { ty, width, .. } => rows::of_state(ty, width as usize, expected, got),
        StateKind::Tokens => rows::of_words(1, &words(expected), &words(got)),
        StateKind::Words(all) => rows::of_floats(all as usize, bytemuck::cast_slice(&words(expected)), bytemuck::cast_slice(&words(got))),
    }
}

/// The bound of rounding of the states that these parts append to, if they also attend; else 0.
fn read_again(parts: &[Node<Primitive>], states: &States) -> f64 {
    if !parts.iter().any(|part| matches!(part.op, Primitive::Op(Op::Attention(_)))) {
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

/// Rows of `k` elements in f16 with scales, whole or in slabs.
struct Halves {
    scales: Tensor,
    k: usize,
    slab: u32,
}

/// The scales and halves that a part makes, if `t` is one of the two.
fn halves_of(parts: &[Node<Primitive>], t: Tensor) -> Option<Halves> {
    parts.iter().rev().find_map(|part| match &part.op {
        Primitive::PackF16(pack) if [pack.scales.id, pack.halves.id].contains(&t.id) => {
            Some(Halves { scales: pack.scales, k: pack.x.shape.width() as usize, slab: pack.slab })
        }
        Primitive::LevelF16(level) if [level.scales.id, level.halves.id].contains(&t.id) => {
            Some(Halves { scales: level.scales, k: 2 * level.halves.shape.width() as usize, slab: 0 })
        }
        _ => None,
    })
}

/// Compares a tensor row by row.
pub(crate) fn compared(t: Tensor, expected: &[u32], got: &[u32]) -> Difference {
    let width = t.shape.width() as usize;
    match t.element {
        Element::F32 => rows::of_floats(width, bytemuck::cast_slice(expected), bytemuck::cast_slice(got)),
        Element::U32 => rows::of_words(width, expected, got),
        Element::F16 => rows::of_halves(width, expected, got),
        Element::Q8 => rows::of_packed(width / 3 * 8, expected, got),
    }
}
