//! Agreement of a plan with the host: every operation runs on the device, then by its oracle on
//! the host, from the inputs that the device read.

pub(crate) mod results;
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
use crate::graph::operation::Operation;
use crate::graph::record::{Node, Origin, Phase};
use crate::graph::tensor::{State, StateKind, Tensor};
use crate::kernel::PEAK;
use crate::kernel::dispatch::Arg;
use crate::lower::pack::level_f16::{COARSER, LEVEL_F16};
use crate::lower::primitive::Primitive;
use crate::ops::Op;
use crate::plan::{Planned, Step};
use cpu_ref::KvType;
use results::Results;
use rows::Difference;
use std::collections::HashSet;
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
    /// The largest difference of an element, in units of the root of the bound.
    pub peak: f64,
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
            let written = self.written(&steps, parts);
            let words = self.run_steps(&steps, input, &written).await?;
            let mut of_states = vec![];
            for state in self.written_states(&steps) {
                of_states.push((state, whole(states, state).await?));
            }
            unfinished.extend(steps.iter().copied());
            let of: Vec<&Step> = unfinished.iter().map(|&at| &self.planned().steps[at]).collect();
            let levels = of.iter().any(|step| std::ptr::eq(step.dispatch.variant.kernel, &LEVEL_F16));
            let larger = if levels { COARSER } else { 2.0 };
            let got = Results { tensors: written.iter().copied().zip(words).collect(), larger, states: of_states };
            let finished = !parts.is_empty();
            if finished && mirror.wants(&of) {
                let (worst, difference) = got.compare(parts, &mut values);
                let kernels = of.iter().map(|step| step.shader.label()).collect();
                let near = unseen(parts, &written).map(|t| values.near(t)).sum();
                let bounds = of.iter().map(|step| step.dispatch.variant.kernel.nmse);
                let bound = bounds.fold(if near > 0 { ROUNDED } else { read_again(parts, states) }, f64::max);
                let peak = of.iter().map(|step| step.dispatch.variant.peak).fold(PEAK, f64::max);
                agreements.push(Agreement { kernels, layer: node.stage.layer, worst, difference, near, bound, peak });
            } else {
                got.take_over(&mut values);
            }
            for &id in &host.ends[node.parts.clone()].concat() {
                *values.words(id) = vec![];
            }
            if finished {
                unfinished.clear();
            }
        }
        let outputs = host.read_back.iter().map(|t| values.words(t.id).clone()).collect();
        mirror.states = Some(mirrored);
        Ok((Outputs(outputs), agreements))
    }

    /// The values that these dispatches write and that a part makes. Values between the dispatches
    /// of an operation are gone at its end.
    fn written(&self, steps: &[usize], parts: &[Node<Primitive>]) -> Vec<Tensor> {
        let steps = || steps.iter().map(|&at| &self.planned().steps[at]);
        let results: HashSet<u32> = steps().flat_map(|step| step.op.io().writes).map(|t| t.id).collect();
        let made: HashSet<u32> = parts.iter().flat_map(|part| part.op.io().writes).map(|t| t.id).collect();
        let mut written: Vec<Tensor> = steps().flat_map(|step| step.dispatch.tensors(true)).collect();
        written.retain(|t| made.contains(&t.id) && results.contains(&t.id));
        written.sort_by_key(|t| t.id);
        written.dedup_by_key(|t| t.id);
        written
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
