//! Agreement of a plan with the host: every operation runs on the device, then by its oracle on
//! the host, from the inputs that the device read.

pub mod rows;

use super::cpu::{CpuPlan, OnHost, input_words};
use super::gpu::GpuPlan;
use super::{Outputs, Plan};
use crate::device::executor::Executor;
use crate::error::Error;
use crate::exec::states::States;
use crate::exec::weights::Weights;
use crate::graph::host::Host;
use crate::graph::input::StepInput;
use crate::graph::operation::{Operation, Reference};
use crate::graph::record::{Node, Origin};
use crate::graph::tensor::{Element, State, StateKind, Tensor};
use crate::kernel::dispatch::Arg;
use crate::lower::primitive::Primitive;
use crate::ops::Op;
use rows::Difference;
use std::collections::HashMap;
use std::sync::Arc;

/// The host's side of a comparison: the weights of the same model on [`Executor::Cpu`], and a copy
/// of the states.
pub struct Mirror {
    weights: Arc<Weights>,
    states: Option<States>,
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
    /// neighbour.
    pub bound: f64,
}

/// The largest NMSE of a row if one of its activations was rounded to a neighbour: the error of
/// rounding to 8 bits itself.
pub const ROUNDED: f64 = 1e-4;

impl Agreement {
    /// Whether every row is within the bound, and few values were rounded to a neighbour.
    #[must_use]
    pub fn holds(&self) -> bool {
        if self.near > 0 { self.difference.nmse <= self.bound } else { self.difference.within(self.bound) }
    }
}

impl Mirror {
    /// A mirror of a model whose weights are listed in the same order as those of the plan.
    #[must_use]
    pub fn new(weights: Arc<Weights>) -> Self {
        Self { weights, states: None }
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
    /// As [`Plan::run_async`]; [`Error::OutOfMemory`] for the copy of the states.
    ///
    /// # Panics
    /// If the weights of `mirror` are of another model.
    pub async fn agree_async(
        &mut self,
        mirror: &mut Mirror,
        states: &mut States,
        input: &StepInput,
    ) -> Result<(Outputs, Vec<Agreement>), Error> {
        match self {
            Self::Gpu(plan) => plan.agree(mirror, states, input).await,
            Self::Cpu(plan) => Ok((plan.run(states, input, super::Watch::default())?, vec![])),
        }
    }
}

impl GpuPlan {
    async fn agree(&mut self, mirror: &mut Mirror, states: &States, input: &StepInput) -> Result<(Outputs, Vec<Agreement>), Error> {
        mirror.copy(states).await?;
        self.prepare(states, input).await?;
        let host = CpuPlan::reference(self.planned(), Arc::clone(&mirror.weights));
        let mut store = OnHost { weights: &mirror.weights, states: mirror.states.as_mut().expect("copied") };
        let mut values = Host::new(input.counts(), &mut store, host.origins.len());
        for (id, (origin, shape)) in host.origins.iter().enumerate() {
            if let Origin::Input(kind) = origin {
                *values.words(id as u32) = input_words(*kind, *shape, input, &host.ropes);
            }
        }
        let mut agreements = vec![];
        for node in self.planned().nodes.clone() {
            let steps: Vec<usize> = node.steps.clone().filter(|&at| self.planned().steps[at].dispatch.when.holds(input)).collect();
            let parts = &host.nodes[node.parts.clone()];
            let made: HashMap<u32, &Primitive> =
                parts.iter().flat_map(|part| part.op.io().writes.into_iter().map(|t| (t.id, &part.op))).collect();
            let mut written: Vec<Tensor> = steps.iter().flat_map(|&at| self.planned().steps[at].dispatch.tensors(true)).collect();
            written.retain(|t| made.contains_key(&t.id));
            written.sort_by_key(|t| t.id);
            written.dedup_by_key(|t| t.id);
            let got = self.run_steps(&steps, input, &written).await?;
            parts.iter().for_each(|Node { op, .. }| op.reference(&mut values));
            let (mut difference, mut worst) = (Difference::default(), String::new());
            let mut take = |name: String, of: Difference| {
                if of.nmse >= difference.nmse {
                    worst = name;
                }
                difference.worsen(of);
            };
            for ((n, t), got) in written.iter().enumerate().zip(got) {
                let expected = values.words(t.id);
                // Memory that the dispatches of one operation share is no result of it.
                if expected.is_empty() && !got.is_empty() {
                    continue;
                }
                let drawn = matches!(made[&t.id], Primitive::Op(Op::Sample(_)));
                take(format!("output {n}"), compared(*t, drawn, expected, &got));
                *expected = got;
            }
            for state in self.written_states(&steps) {
                let got = whole(states, state).await?;
                take(format!("state {}", state.0), compared_states(states.kind(state), values.state(state), &got));
                values.state_mut(state).copy_from_slice(&got);
            }
            for &id in &host.ends[node.parts.clone()].concat() {
                *values.words(id) = vec![];
            }
            if !parts.is_empty() {
                let of = steps.iter().map(|&at| &self.planned().steps[at]);
                let bound = of.clone().map(|step| step.dispatch.variant.kernel.nmse).fold(0.0, f64::max);
                let kernels = of.map(|step| step.shader.label()).collect();
                let near = unseen(parts, &written).map(|t| values.near(t)).sum();
                let bound = if near > 0 { bound.max(ROUNDED) } else { bound };
                agreements.push(Agreement { kernels, layer: node.layer, worst, difference, near, bound });
            }
        }
        let outputs = host.read_back.iter().map(|t| values.words(t.id).clone()).collect();
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

/// Compares a tensor row by row. Rows of drawn ids have a logarithm beside the id.
pub(crate) fn compared(t: Tensor, drawn: bool, expected: &[u32], got: &[u32]) -> Difference {
    let width = t.shape.width() as usize;
    match t.element {
        Element::F32 => rows::of_floats(width, bytemuck::cast_slice(expected), bytemuck::cast_slice(got)),
        Element::U32 if drawn => rows::of_draws(expected, got),
        Element::U32 => rows::of_words(width, expected, got),
        Element::F16 => rows::of_halves(width, expected, got),
        Element::Q8 => rows::of_packed(width / 3 * 8, expected, got),
    }
}
